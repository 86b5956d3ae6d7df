import type { Command } from 'commander';
import { sharedLimits } from '../app/budgets.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import type { Settings } from '../config/schema.js';
import { type Day, lastEndedDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { type ExportForecast, forecastExport } from '../export/forecast.js';
import { DUE_ORDER, type ExportPlan, type PlannedDay } from '../export/plan.js';
import { requestsToFindFirstDay } from '../export/first-day.js';
import { longDay, moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { loadedLines, waitingLine } from '../print/export.js';
import { exportStep } from '../steps/export.js';
import { openNewest } from '../warehouse/published.js';
import type { Reader } from '../warehouse/query.js';
import {
  type Act,
  dayArgument,
  JSON_LOG,
  PLATFORM_ENVIRONMENT_HELP,
  withProjectOption,
  withWorkspaceOptions,
} from './options.js';
import { conclude, runSteps } from './steps.js';

interface ExportOptions extends WorkspaceOptions {
  readonly from?: Day;
  readonly to?: Day;
  readonly reload?: boolean;
  readonly plan?: boolean;
  readonly json?: boolean;
}

export function declareExport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('export')))
    .summary('load days that are missing, failed or not settled yet')
    .description(
      'Loads the days that are missing, failed or not settled yet, newest first, and publishes the history. Reloads final days only with --reload. Never loads today, which has not ended.',
    )
    .option('--from <day>', 'first day, YYYY-MM-DD (default: where the history starts)', dayArgument)
    .option('--to <day>', 'last day, included (default: yesterday, UTC)', dayArgument)
    .option(
      '--reload',
      'reload every day from --from to --to, including final ones, waiting for the hourly limit as long as needed',
    )
    .option(
      '--plan',
      'print which days would be loaded, how many requests they need and when they would be done; send nothing',
    )
    .option('--json', `${JSON_LOG}; with --plan, the plan`)
    .addHelpText(
      'after',
      `
Examples:
  readership export                                       everything that is due
  readership export --plan                                what that would cost
  readership export --from 2026-01-01 --to 2026-01-31     the days of January that are due
  readership export --reload --from 2026-01-05 --to 2026-01-05   reload one day
  readership export --shard 2/8                           only the second of eight shards
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((options: ExportOptions) => act((runtime) => runExport(options, runtime)));
}

async function runExport(options: ExportOptions, runtime: Runtime): Promise<ExitCode> {
  checkBounds(options, runtime.now());
  if (options.plan === true) return printExportPlan(options, runtime);
  const stepsOptions = { ...options, waits: options.reload === true };
  const { result, outages, cost } = await runSteps('export', stepsOptions, runtime, (runner, context) =>
    runner.step('export', () => exportStep(context, options)),
  );
  for (const project of result ?? []) runtime.output.data(loadedLines(project, cost).join('\n'));
  return conclude(outages, runtime);
}

function checkBounds({ from, to, reload }: ExportOptions, now: Date): void {
  if (reload === true && from === undefined)
    throw new ConfigurationError(
      '--reload needs --from, the first day to read again: readership export --reload --from 2026-01-05 --to 2026-01-05. ' +
        'To find the days that differ, run: readership audit',
    );
  const yesterday = lastEndedDay(now);
  if (from !== undefined && to !== undefined && from > to)
    throw new ConfigurationError(`--from ${from} is after --to ${to}: swap them.`);
  if (from !== undefined && from > yesterday)
    throw new ConfigurationError(
      `--from ${from} has not ended yet (UTC): the last day to load is ${yesterday}.`,
    );
  if (to !== undefined && to > yesterday)
    throw new ConfigurationError(`--to ${to} has not ended yet (UTC): the last day to load is ${yesterday}.`);
}

/** Prints which days an export would load, the requests they need, and when they would be done. Sends nothing. */
async function printExportPlan(options: ExportOptions, runtime: Runtime): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { settings, projects } = workspace;
  // Before the first export, nothing is loaded and no requests are used.
  const { liveFile, historyFile } = workspace;
  const history = await openNewest(liveFile, historyFile);
  const reader: Reader = history ?? { query: () => Promise.resolve([]) };
  const now = runtime.now();
  try {
    const request = { ...options, projects };
    const planned = await forecastExport(reader, sharedLimits(workspace), settings, request, now);
    if (options.json === true) runtime.output.json(planned.map((one) => asJson(one, now)));
    else for (const one of planned) runtime.output.data(planLines(one, settings, now).join('\n'));
    return 0;
  } finally {
    history?.close();
  }
}

function planLines(
  { project, plan, requests, hour, finishingAt }: ExportForecast,
  { history: { requestsPerHour: limit } }: Settings,
  now: Date,
): string[] {
  const name = project.name;
  if (plan === undefined)
    return [
      `${name}: the first day is not known yet. The first export finds it with at most ${requestsToFindFirstDay(lastEndedDay(now))} requests, and then loads every day since, newest first.`,
      `  A day takes one request per 250 pages viewed${limit === 'unlimited' ? '' : `: a year of small days takes 365, about ${Math.ceil(365 / limit)} h at ${limit} an hour`}. Set history.start, or --from, to load less.`,
    ];
  if (plan.range.first > plan.range.last)
    return [`${name}: nothing to load: the history begins on ${longDay(plan.range.first)}.`];
  const budget =
    limit === 'unlimited' ? '' : ` of ${limit} an hour, ${hour.used(now)} of them used in the last hour`;
  // Before any day was read, each is assumed to be small.
  const about =
    plan.alreadyFinal + plan.readToday + plan.days.filter(({ due }) => due !== 'missing').length > 1
      ? 'about'
      : 'at least';
  const end =
    about === 'at least'
      ? 'more for days with more than 250 pages, which the first days will show'
      : finishingAt === undefined || finishingAt <= now
        ? 'can all be sent now'
        : `done around ${moment(finishingAt)}`;
  return [
    `${name}: ${counted(plan.days.length, 'day')} to load of ${plainDayRange(plan.range)}; ${counted(plan.alreadyFinal, 'day')} already final`,
    ...(plan.readToday === 0
      ? []
      : [`  ${counted(plan.readToday, 'day')} already read today, due again tomorrow`]),
    ...(plan.waiting.length === 0 ? [] : [`  ${waitingLine(plan.waiting)}`]),
    ...DUE_ORDER.flatMap((due) => dueLine(due, plan)),
    `  ${about} ${counted(requests, 'request')}${budget}: ${end}`,
  ];
}

function dueLine(due: PlannedDay['due'], plan: ExportPlan): string[] {
  const days = plan.days.filter((planned) => planned.due === due).map(({ day }) => day);
  return days.length === 0 ? [] : [`  ${due.padEnd(12)}  ${counted(days.length, 'day')}, ${daysShown(days)}`];
}

/** Days are listed newest first. */
const daysShown = (days: readonly Day[]): string =>
  days.length <= 4 ? days.join(', ') : `${days[0] ?? ''} back to ${days.at(-1) ?? ''}`;

const asJson = ({ project, plan, requests, hour, finishingAt }: ExportForecast, now: Date) => ({
  project: project.id,
  range: plan?.range ?? null,
  days: plan?.days ?? [],
  alreadyFinal: plan?.alreadyFinal ?? 0,
  readToday: plan?.readToday ?? 0,
  waiting: plan?.waiting ?? [],
  requests: plan === undefined ? null : requests,
  requestsUsedThisHour: hour.used(now),
  finishingAt: finishingAt ?? null,
});
