import { expectHistory, withState } from '../app/state.js';
import { readWorkspace, type Runtime, type Workspace } from '../app/workspace.js';
import { lastEndedDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { readDayRecords } from '../export/day-records.js';
import { type PlannedExport, planProject } from '../export/plan.js';
import type { ExportBounds } from '../export/range.js';
import { auditLines, exportPlanJson, exportPlanLines, loadedLines } from '../print/export.js';
import { auditStep, exportStep } from '../steps/export.js';
import { type Parts, StepRunner } from '../steps/step.js';
import { datasetSummary, publishStep } from '../steps/publish.js';
import { readRequests } from '../state/platform.js';
import { hasHistory } from '../state/workspace.js';
import { openOwnHistory } from '../history/history.js';
import { exists, relativePath } from '../files.js';
import {
  aDatasetDirectory,
  aDay,
  flag,
  JSON_LOG,
  PLATFORM_ENVIRONMENT,
  projectCommand,
  value,
  workspaceCommand,
} from './command.js';
import { conclude, runSteps, withSteps } from './steps.js';

export const exportCommand = projectCommand('export', {
  summary: 'load days that are missing, failed or not final yet',
  description:
    'Loads the days that are missing, failed or not final yet, newest first. Reloads final days only with --reload. Never loads today, which has not ended.',
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
  run: async ({ plan = false, reload = false, json = false, ...options }, runtime) => {
    const workspace = await readWorkspace(options, runtime);
    const isLost = reload && options.from === undefined && (await isHistoryLost(workspace));
    // Without a history, every day is missing.
    const bounds = isLost ? { to: options.to } : { from: options.from, to: options.to, reload };
    checkBounds(bounds, runtime.now());
    if (plan) return printPlan(workspace, { ...bounds, json, mayBeginAgain: reload }, runtime);
    const patient = reload ? { ...workspace, maxWaitMs: Infinity } : workspace;
    const { result, outages, cost } = await runSteps(
      'export',
      patient,
      { json, mayBeginAgain: reload },
      runtime,
      async (runner, parts) => {
        const exported = await runner.step('export', () => exportStep(parts, bounds));
        await publishChanges(runner, parts);
        return exported;
      },
    );
    for (const line of loadedLines(result ?? [], cost)) runtime.output.data(line);
    return conclude(outages, runtime);
  },
});

/** Writes the files of the dataset that changed, if there is one. */
async function publishChanges(runner: StepRunner, parts: Parts): Promise<void> {
  if (parts.workspace.dataset !== undefined) await runner.step('publish', () => publishStep(parts));
}

/** Whether days were loaded, and the history that had them is missing. */
const isHistoryLost = async (workspace: Workspace): Promise<boolean> =>
  !(await exists(workspace.historyFile)) && withState(workspace, (state) => hasHistory(state));

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
const printPlan = (
  workspace: Workspace,
  {
    json,
    mayBeginAgain,
    ...bounds
  }: ExportBounds & { readonly json: boolean; readonly mayBeginAgain: boolean },
  runtime: Runtime,
): Promise<ExitCode> =>
  withState(workspace, async (state): Promise<ExitCode> => {
    const { settings, projects, credentials, historyFile } = workspace;
    if (!mayBeginAgain) await expectHistory(workspace, state);
    const opened = (await exists(historyFile)) ? await openOwnHistory(historyFile) : undefined;
    const history = opened ?? { storedDays: () => Promise.resolve(new Map()) };
    const now = runtime.now();
    try {
      const planned: PlannedExport[] = [];
      for (const project of projects) {
        const records = await readDayRecords({ history, state }, project.id);
        planned.push(planProject(project, records, state, settings, bounds, now));
      }
      if (json) runtime.output.json(planned.map(exportPlanJson));
      else
        for (const one of planned) {
          const { limit } = readRequests(state, credentials.bucketOf(one.project), now);
          runtime.output.data(exportPlanLines(one, now, limit).join('\n'));
        }
      return 0;
    } finally {
      opened?.close();
    }
  });

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
    const workspace = await readWorkspace(options, runtime);
    const { repair = false } = options;
    const done = await runSteps('audit', workspace, options, runtime, async (runner, parts) => {
      const audited = await runner.step('audit', () => auditStep(parts, { repair }));
      await publishChanges(runner, parts);
      return audited;
    });
    const audits = done.result ?? [];
    for (const one of audits) runtime.output.data(auditLines(one).join('\n'));
    const exitCode = conclude(done.outages, runtime);
    const isLeft = audits.some(({ audit }) => audit.repaired === undefined && audit.differing.length > 0);
    return isLeft ? 1 : exitCode;
  },
});

export const publish = workspaceCommand('publish', {
  summary: 'write the Parquet dataset now',
  description:
    'Writes every file of the Parquet dataset, which Spark, ClickHouse, Polars and DuckDB read, and then runs publish.then. Where publish.parquet is set, every command that loads days writes the files that changed.',
  options: {
    parquet: value(
      '<directory>',
      'write the dataset into this directory (default: publish.parquet)',
      aDatasetDirectory,
    ),
    json: flag(JSON_LOG),
  },
  examples: `
  readership publish
  readership publish --parquet /srv/dataset      how to read it: docs/scale.md`,
  run: async (options, runtime) => {
    const { output, workingDirectory } = runtime;
    const workspace = await readWorkspace(options, runtime, 'optional');
    return withSteps<ExitCode>('publish', workspace, options, runtime, async (parts) => {
      const { dataset } = parts.workspace;
      if (dataset === undefined)
        throw new ConfigurationError(
          'There is no directory for the Parquet dataset: set publish.parquet in readership.yaml, or name one: readership publish --parquet DIRECTORY',
        );
      const runner = new StepRunner(parts);
      const change = await runner.step('publish', () => publishStep(parts, { isWhole: true }));
      if (change !== undefined)
        output.data(`${relativePath(dataset.location, workingDirectory)}  ${datasetSummary(change)}`);
      return conclude(runner.outages, runtime);
    });
  },
});
