import { z } from 'zod';
import { messageOf } from '../errors.js';
import { exportStep } from '../steps/export.js';
import { isUpToDate, publishStep } from '../steps/publish.js';
import { improveStep } from '../steps/improve.js';
import { pollStep } from '../steps/jobs.js';
import { reportStep } from '../steps/report.js';
import { type StepContext, type StepOutage, StepRunner } from '../steps/step.js';
import { readLastRuns, type StepName } from '../steps/runs.js';
import { readSql } from '../warehouse/query.js';
import { ping, sendAlerts } from './alerts.js';
import { dueSteps } from './due.js';

/** The results of the five steps. */
export type LoopOutcome = Awaited<ReturnType<typeof runLoop>>;

interface LoopOptions {
  /** Whether improve creates the jobs it plans. */
  readonly apply: boolean;
  /** How long to keep polling while jobs are active; by default each due job is polled once. */
  readonly waitMs?: number;
  /** The steps to run; by default all. */
  readonly due?: ReadonlySet<StepName>;
}

/**
 * The one loop: export, improve, poll, report, publish. Each step finds what is due in stored
 * state, so the loop may run at any time, twice, or after a week offline. A step that fails is
 * recorded and does not stop the next; an interruption does.
 */
export async function runLoop(context: StepContext, options: LoopOptions) {
  const run = new StepRunner(context, options.due);
  const exported = await pinging(context, run, () => run.step('export', () => exportStep(context)));
  const improved = await run.step('improve', () => improveStep(context, options.apply));
  // A project whose improve step has just failed sends no prompts in this run.
  const isImproved = new Map(improved?.map(({ project, stopped }) => [project, stopped === undefined]));
  const heldBack = improved && context.projects.filter((project) => isImproved.get(project) !== true);
  const polled = await run.step('poll', () => pollStep(context, { ...pollingOf(options), heldBack }));
  const reported = await run.step('report', () => reportStep(context));
  // Before publishing, so that the published history has them; after it for a failure of publishing itself.
  const unsent = [await sendAlerts(context)];
  await run.step('publish', () => publishStep(context));
  unsent.push(await sendAlerts(context));
  const { outages } = run;
  sayUnsent(context, unsent, outages);
  return { exported: exported ?? [], improved: improved ?? [], polled, reported, outages };
}

/** Says once why alerts were not sent, unless a step says so. */
function sayUnsent(
  { observer }: StepContext,
  unsent: readonly (string | undefined)[],
  outages: readonly StepOutage[] = [],
): void {
  const said = outages.map(({ error }) => messageOf(error));
  for (const why of new Set(unsent))
    if (why !== undefined && !said.includes(why)) observer.onAlertFailed?.(`No alert could be sent: ${why}`);
}

const pollingOf = ({ waitMs = 0 }: LoopOptions) =>
  waitMs === 0 ? {} : { deadlineMs: performance.now() + waitMs, keepsPolling: true };

/** Exports between two pings. An export that has to wait sends no second one, so the monitor waits too. */
async function pinging<Detail>(
  { settings, elsewhere, signal, observer }: StepContext,
  run: StepRunner,
  work: () => Promise<Detail>,
): Promise<Detail> {
  const { pingUrl } = settings.alerts;
  if (pingUrl === undefined || elsewhere !== undefined || !run.isToDo('export')) return work();
  const send = async (suffix: '/start' | '/fail' | '') => {
    const problem = await ping(pingUrl + suffix, signal);
    if (problem !== undefined) observer.onAlertFailed?.(problem);
  };
  await send('/start');
  const result = await work().catch(async (error: unknown) => {
    // Not even the failure could be recorded.
    await send('/fail');
    throw error;
  });
  const outcome = run.outages.find(({ step }) => step === 'export')?.outcome;
  if (outcome === undefined) await send('');
  if (outcome === 'failed') await send('/fail');
  return result;
}

const POLL_WAITS = readSql(import.meta.url, 'statements/poll-waits.sql');

/** Runs the steps that are due; undefined if none is. `serviceSince` is when the service began. */
export async function runDue(context: StepContext, serviceSince: Date): Promise<LoopOutcome | undefined> {
  const { warehouse, settings, now } = context;
  const at = now();
  const apply = settings.improve.mode === 'apply';
  const [poll] = await warehouse.query(POLL_WAITS, z.object({ waits: z.boolean() }), { apply, now: at });
  const runs = await readLastRuns(warehouse, at);
  const stored = {
    runs,
    pollWaits: poll?.waits ?? false,
    serviceSince,
    // If that cannot be determined, publishing reports why.
    isUpToDate: await isUpToDate(context).catch(() => false),
  };
  const due = dueSteps(settings.schedule, stored, at);
  if (due.size > 0) return runLoop(context, { apply, due });
  sayUnsent(context, [await sendAlerts(context)]);
  return undefined;
}
