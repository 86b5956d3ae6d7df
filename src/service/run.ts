import { z } from 'zod';
import { messageOf } from '../errors.js';
import { connectionFailure, requestUrl } from '../network.js';
import { timeLimit } from '../sleep.js';
import { exportStep } from '../steps/export.js';
import { improveStep } from '../steps/improve.js';
import type { Parts, Session, Using } from '../steps/parts.js';
import { pollStep } from '../steps/poll.js';
import { isUpToDate, runPublish } from '../steps/publish.js';
import { reportStep } from '../steps/report.js';
import { readLastRuns, type StepName } from '../steps/runs.js';
import { StepRunner } from '../steps/step.js';
import { readSql } from '../warehouse/query.js';
import { sendAlerts } from './alerts.js';
import { dueSteps } from './due.js';

/** The results of the five steps. */
export type RunOutcome = Awaited<ReturnType<typeof runOnce>>;

interface RunOptions {
  /** Whether improve creates the jobs it plans. */
  readonly apply: boolean;
  /** How long to keep polling while jobs are active; by default each due job is polled once. */
  readonly waitMs?: number;
  /** The steps to run; by default all. */
  readonly due?: ReadonlySet<StepName>;
}

/**
 * Runs the five steps in order: export, improve, poll, report, publish. Each step finds what is due in
 * stored state, so this may be done at any time, twice, or after a week offline. A step that fails is
 * recorded and does not stop the next; an interruption does.
 */
export async function runOnce(parts: Parts, { apply, waitMs = 0, due }: RunOptions) {
  const run = new StepRunner(parts, due);
  const exported = await pinging(parts, run, () => run.step('export', () => exportStep(parts)));
  const improved = await run.step('improve', () => improveStep(parts, { apply }));
  const isHeldBack = apply && improved !== undefined;
  const polling = waitMs === 0 ? {} : { deadlineMs: performance.now() + waitMs, keepsPolling: true };
  const polled = await run.step('poll', () => pollStep(parts, { ...polling, isHeldBack }));
  const reported = await run.step('report', () => reportStep(parts));
  // Before publishing, so that the published history has them; after it for a failure of publishing itself.
  const unsent = new Set([await sendAlerts(parts)]);
  await runPublish(run, parts);
  unsent.add(await sendAlerts(parts));
  // Not again what a step says.
  for (const { error } of run.outages) unsent.delete(messageOf(error));
  sayUnsent(parts.session, unsent);
  return { exported: exported ?? [], improved: improved ?? [], polled, reported, outages: run.outages };
}

/** Says why alerts were not sent, if they were not. */
function sayUnsent({ observer }: Session, unsent: Iterable<string | undefined>): void {
  for (const why of unsent) if (why !== undefined) observer.onAlertFailed?.(`No alert could be sent: ${why}`);
}

/** How long a monitoring service may take to answer. */
const PING_TIMEOUT_MS = 5_000;

/** Exports between two pings. An export that has to wait sends no second one, so the monitor waits too. */
async function pinging<Detail>(
  { workspace, effects, session }: Using<'workspace' | 'effects' | 'session'>,
  run: StepRunner,
  work: () => Promise<Detail>,
): Promise<Detail> {
  const { pingUrl } = workspace.settings.alerts;
  const { signal, observer } = session;
  if (pingUrl === undefined || effects.elsewhere !== undefined || !run.isToDo('export')) return work();
  // The path of the address is a secret.
  const monitor = `The ping to ${new URL(pingUrl).origin} (alerts.pingUrl)`;
  const ping = async (suffix: '/start' | '/fail' | '') => {
    try {
      const inTime = timeLimit(PING_TIMEOUT_MS, signal);
      const { statusCode, body } = await requestUrl(pingUrl + suffix, { signal: inTime });
      await body.dump();
      if (statusCode >= 400) observer.onAlertFailed?.(`${monitor} got status ${statusCode}.`);
    } catch (error) {
      observer.onAlertFailed?.(`${monitor} failed: ${connectionFailure(error)}`);
    }
  };
  await ping('/start');
  const result = await work().catch(async (error: unknown) => {
    // Not even the failure could be recorded.
    await ping('/fail');
    throw error;
  });
  const outcome = run.outages.find(({ step }) => step === 'export')?.outcome;
  if (outcome === undefined) await ping('');
  if (outcome === 'failed') await ping('/fail');
  return result;
}

const POLL_WAITS = readSql(import.meta.url, 'statements/poll-waits.sql');

/** Runs the steps that are due; undefined if none is. `serviceSince` is when the service began. */
export async function runDue(parts: Parts, serviceSince: Date): Promise<RunOutcome | undefined> {
  const { workspace, store, session } = parts;
  const { settings } = workspace;
  const at = session.now();
  const apply = settings.improve.mode === 'apply';
  const [poll] = await store.query(POLL_WAITS, z.object({ waits: z.boolean() }), { apply, now: at });
  const runs = await readLastRuns(store, at);
  const stored = {
    runs,
    pollWaits: poll?.waits ?? false,
    serviceSince,
    // If that cannot be determined, publishing reports why.
    isUpToDate: await isUpToDate(parts).catch(() => false),
  };
  const due = dueSteps(settings.schedule, stored, at);
  if (due.size > 0) return runOnce(parts, { apply, due });
  sayUnsent(parts.session, [await sendAlerts(parts)]);
  return undefined;
}
