import { stateOf } from '../app/state.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { shownPath } from '../config/load.js';
import { lastEndedDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { type PlannedExport, planProject } from '../export/planned.js';
import type { ExportBounds } from '../export/range.js';
import { auditLines, loadedLines, planJson, planLines } from '../print/export.js';
import { auditStep, exportStep } from '../steps/export.js';
import { datasetSummary, runPublish } from '../steps/publish.js';
import { StepRunner } from '../steps/step.js';
import { readRequests } from '../state/requests.js';
import { openNewest } from '../warehouse/published.js';
import type { Reader } from '../warehouse/query.js';
import {
  aDatasetDirectory,
  aDay,
  projectCommand,
  workspaceCommand,
  flag,
  JSON_LOG,
  PLATFORM_ENVIRONMENT,
  value,
} from './command.js';
import { conclude, runSteps, withSteps } from './steps.js';

export const exportCommand = projectCommand('export', {
  summary: 'load days that are missing, failed or not final yet',
  description:
    'Loads the days that are missing, failed or not final yet, newest first, and publishes the history. Reloads final days only with --reload. Never loads today, which has not ended.',
  options: {
    from: value('<day>', 'first day, YYYY-MM-DD (default: where the history starts)', aDay),
    to: value('<day>', 'last day, included (default: yesterday, UTC)', aDay),
    reload: flag('reload every day from --from to --to, including final ones, waiting out any pause'),
    plan: flag('print which days would be loaded and how many requests they need; send nothing'),
    json: flag(`${JSON_LOG}; with --plan, the plan`),
  },
  examples: `
  readership export                                       everything that is due
  readership export --plan                                what that needs
  readership export --from 2026-01-01 --to 2026-01-31     January's due days
  readership export --reload --from 2026-01-05 --to 2026-01-05   reload one day`,
  environment: PLATFORM_ENVIRONMENT,
  run: async (options, runtime) => {
    checkBounds(options, runtime.now());
    if (options.plan === true) return printPlan(options, runtime);
    const stepsOptions = { ...options, waits: options.reload === true };
    const { result, outages, cost } = await runSteps('export', stepsOptions, runtime, (runner, parts) =>
      runner.step('export', () => exportStep(parts, options)),
    );
    for (const line of loadedLines(result ?? [], cost)) runtime.output.data(line);
    return conclude(outages, runtime);
  },
});

function checkBounds({ from, to, reload }: ExportBounds, now: Date): void {
  if (reload === true && from === undefined)
    throw new ConfigurationError(
      '--reload needs --from, the first day to read again: readership export --reload --from 2026-01-05 --to 2026-01-05. ' +
        'To find the days that differ, run: readership audit',
    );
  if (from !== undefined && to !== undefined && from > to)
    throw new ConfigurationError(`--from ${from} is after --to ${to}: swap them.`);
  const yesterday = lastEndedDay(now);
  for (const [name, day] of Object.entries({ from, to }))
    if (day !== undefined && day > yesterday)
      throw new ConfigurationError(
        `--${name} ${day} has not ended yet (UTC): the last day to load is ${yesterday}.`,
      );
}

/** Prints which days an export would load, and the requests they need. Sends nothing. */
async function printPlan(
  options: WorkspaceOptions & ExportBounds & { readonly json?: boolean },
  runtime: Runtime,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { settings, projects, credentials, liveFile, historyFile } = workspace;
  const state = await stateOf(workspace);
  const history = await openNewest(liveFile, historyFile);
  // Before the first export, nothing is loaded and no requests are used.
  const reader: Reader = history ?? { query: () => Promise.resolve([]) };
  const now = runtime.now();
  try {
    const planned: PlannedExport[] = [];
    for (const project of projects)
      planned.push(await planProject({ reader, state }, project, settings, options, now));
    if (options.json === true) runtime.output.json(planned.map(planJson));
    else
      for (const one of planned) {
        const { limit } = readRequests(state, credentials.bucketOf(one.project), now);
        runtime.output.data(planLines(one, now, limit).join('\n'));
      }
    return 0;
  } finally {
    history?.close();
    state.close();
  }
}

export const audit = projectCommand('audit', {
  summary: 'compare the stored history with the platform in few requests',
  description:
    'Compares the final days with the totals of the platform: one request if the history has no gaps, and a few more to find a day that differs. Because it compares totals, it misses a change that leaves the totals of a day the same; `export --reload` reads days in full. Exits 1 if something differs and was not repaired.',
  options: { repair: flag('reload the days that differ'), json: flag(JSON_LOG) },
  examples: `
  readership audit
  readership audit --repair`,
  environment: PLATFORM_ENVIRONMENT,
  run: async (options, runtime) => {
    const { result: audits = [], ...rest } = await runSteps('audit', options, runtime, (runner, parts) =>
      runner.step('audit', () => auditStep(parts, { repair: options.repair === true })),
    );
    for (const one of audits) runtime.output.data(auditLines(one).join('\n'));
    const exitCode = conclude(rest.outages, runtime);
    const isLeft = audits.some(
      ({ audit }) => audit.repaired === undefined && audit.differing.length + audit.damaged.length > 0,
    );
    return isLeft ? 1 : exitCode;
  },
});

export const publish = workspaceCommand('publish', {
  summary: 'publish the history now, with --parquet also as a Parquet dataset',
  description:
    'Writes data/history.duckdb, a sorted, read-only copy of the whole history, and replaces the previous copy in one step. With --parquet, or publish.parquet in the configuration, also writes every file of a Parquet dataset, which Spark, ClickHouse, Polars and DuckDB read, and then runs publish.then. Every command that changes the history publishes what changed, too.',
  options: {
    parquet: value(
      '<directory>',
      'also publish a Parquet dataset in this directory (default: publish.parquet)',
      aDatasetDirectory,
    ),
    json: flag(JSON_LOG),
  },
  examples: `
  readership publish
  readership publish --parquet /srv/dataset      how to read it: docs/scale.md`,
  run: async (options, runtime) => {
    const { output, workingDirectory } = runtime;
    return withSteps<ExitCode>('publish', { ...options, secrets: 'optional' }, runtime, async (parts) => {
      const { historyFile, dataset } = parts.workspace;
      const runner = new StepRunner(parts);
      const published = await runPublish(runner, parts, { isWhole: true });
      const line = (path: string, words: string) => {
        output.data(`${shownPath(path, workingDirectory)}  ${words}`);
      };
      if (published !== undefined) line(historyFile, `${(published.bytes / 1e6).toFixed(1)} MB`);
      if (published?.dataset !== undefined && dataset !== undefined)
        line(dataset.location, datasetSummary(published.dataset));
      return conclude(runner.outages, runtime);
    });
  },
});
