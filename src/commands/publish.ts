import type { Command } from 'commander';
import { relative } from 'node:path';
import type { ExitCode } from '../errors.js';
import { type Act, JSON_LOG, lakeArgument, withWorkspaceOptions } from './options.js';
import { conclude, runSteps } from './steps.js';
import { isLocal } from '../config/values.js';
import { lakeSummary } from '../steps/publish.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';

type PublishOptions = WorkspaceOptions & { readonly json?: boolean };

export function declarePublish(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('publish'))
    .summary('publish the history now, with --parquet also as a lake')
    .description(
      'Writes data/history.duckdb, a sorted, read-only copy of the whole history, and replaces the previous copy in one step. With --parquet, or publish.parquet in the configuration, it also updates a lake: two Delta tables that Spark, Trino, ClickHouse, polars and DuckDB read. It writes only the months that changed. Export and run publish by themselves when something changed.',
    )
    .option(
      '--parquet <place>',
      'also publish a lake in this directory or s3://bucket/prefix: a new or empty one, or an existing lake (default: publish.parquet)',
      lakeArgument,
    )
    .option('--json', JSON_LOG)
    .addHelpText(
      'after',
      '\nExamples:\n  readership publish\n  readership publish --parquet /srv/lake         how to read it: docs/scale.md\n  readership publish --parquet s3://bucket/lake  needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
    .action((options: PublishOptions) => act((runtime) => publish(options, runtime)));
}

async function publish(options: PublishOptions, runtime: Runtime): Promise<ExitCode> {
  const whole = { ...options, isWhole: true };
  const nothing = () => Promise.resolve();
  const { published, outages, workspace } = await runSteps('publish', whole, runtime, nothing);
  const line = (path: string, words: string) => {
    const shown = isLocal(path) ? relative(runtime.workingDirectory, path) || '.' : path;
    runtime.output.data(`${shown}  ${words}`);
  };
  const { historyFile, lake } = workspace;
  if (published !== undefined) line(historyFile, `${(published.bytes / 1e6).toFixed(1)} MB`);
  if (published?.lake !== undefined && lake !== undefined) line(lake.location, lakeSummary(published.lake));
  return conclude(outages, runtime);
}
