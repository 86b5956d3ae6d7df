import { shownLocation } from '../config/load.js';
import { lakeSummary } from '../steps/history.js';
import { aLake, defineCommand, flag, JSON_LOG, value } from './command.js';
import { conclude, runSteps } from './steps.js';

export const publish = defineCommand({
  name: 'publish',
  scope: 'workspace',
  summary: 'publish the history now, with --parquet also as a lake',
  description:
    'Writes data/history.duckdb, a sorted, read-only copy of the whole history, and replaces the previous copy in one step. With --parquet, or publish.parquet in the configuration, it also updates a lake: two Delta tables that Spark, Trino, ClickHouse, polars and DuckDB read. It writes only the months that changed. `export` and `run` publish by themselves when something changed.',
  options: {
    parquet: value(
      '<place>',
      'also publish a lake in this directory or s3://bucket/prefix: a new or empty one, or an existing lake (default: publish.parquet)',
      aLake,
    ),
    json: flag(JSON_LOG),
  },
  examples: `
  readership publish
  readership publish --parquet /srv/lake         how to read it: docs/scale.md
  readership publish --parquet s3://bucket/lake  needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
  run: async (options, runtime) => {
    const whole = { ...options, isWhole: true };
    const nothing = () => Promise.resolve();
    const { published, outages, workspace } = await runSteps('publish', whole, runtime, nothing);
    const line = (path: string, words: string) => {
      runtime.output.data(`${shownLocation(path, runtime.workingDirectory)}  ${words}`);
    };
    const { historyFile, lake } = workspace;
    if (published !== undefined) line(historyFile, `${(published.bytes / 1e6).toFixed(1)} MB`);
    if (published?.lake !== undefined && lake !== undefined) line(lake.location, lakeSummary(published.lake));
    return conclude(outages, runtime);
  },
});
