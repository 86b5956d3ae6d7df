import type { ProjectSettings } from '../config/schema.js';
import type { StepContext } from '../steps/context.js';
import { sendAlerts, ping } from './alerts.js';
import type { StepName } from '../steps/runs.js';
import { StepRunner } from '../steps/runner.js';
import { exportStep } from '../steps/export.js';
import { improveStep, type ProjectImprovement } from '../steps/improve.js';
import { pollStep } from '../steps/poll.js';
import { publishStep } from '../steps/publish.js';
import { reportStep } from '../steps/report.js';

/** The results of the five steps. */
export type LoopOutcome = Awaited<ReturnType<typeof runLoop>>;

interface LoopOptions {
  /** Whether improve creates the jobs it plans. */
  readonly apply: boolean;
  /** How long to keep polling while jobs are active. */
  readonly waitMs: number;
  /** The steps to run; by default all. */
  readonly due?: ReadonlySet<StepName>;
}

/**
 * The one loop: export, improve, poll, report, publish. Each step finds what is due in stored state, so the loop may
 * run at any time, twice, or after a week offline. A step that fails is recorded and does not stop the next; an
 * interruption does.
 */
export async function runLoop(context: StepContext, options: LoopOptions) {
  const run = new StepRunner(context, options.due);
  const exported = await pinging(context, run, () => run.step('export', () => exportStep(context)));
  const improved = await run.step('improve', () => improveStep(context, options.apply));
  const heldBack = heldBackBy(improved, context.projects);
  const polled = await run.step('poll', () => pollStep(context, { waitMs: options.waitMs, heldBack }));
  const reported = await run.step('report', () => reportStep(context));
  // Before publishing, so that the published history has them; after it for a failure of publishing itself.
  await sendAlerts(context);
  await run.step('publish', () => publishStep(context));
  await sendAlerts(context);
  return {
    exported: exported ?? [],
    improved: improved ?? [],
    polled,
    reported,
    outages: run.outages,
  };
}

/** Projects that improving failed in: nothing more is created for them in this run. */
const heldBackBy = (
  improved: readonly ProjectImprovement[] | undefined,
  projects: readonly ProjectSettings[],
): ProjectSettings[] =>
  improved === undefined
    ? []
    : projects.filter(
        (one) => !improved.some(({ project, stopped }) => project === one && stopped === undefined),
      );

/** Does the export between two pings. An export that has to wait sends no second one, so the monitor waits too. */
async function pinging<Detail>(
  { settings, signal, observer }: StepContext,
  run: StepRunner,
  work: () => Promise<Detail>,
): Promise<Detail> {
  const { pingUrl } = settings.alerts;
  if (pingUrl === undefined || !run.isToDo('export')) return work();
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
