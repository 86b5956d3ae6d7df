import cron, { type Logger } from 'node-cron';
import { once } from 'node:events';
import pLimit from 'p-limit';
import { z } from 'zod';
import type { Settings } from '../config/schema.js';
import type { StepContext } from '../steps/context.js';
import { isUpToDate } from '../steps/publish.js';
import { readLastRuns } from '../steps/runs.js';
import { readSql } from '../warehouse/query.js';
import { sendAlerts } from './alerts.js';
import { dueSteps } from './due.js';
import { type LoopOutcome, runLoop } from './loop.js';

interface ServiceOptions {
  readonly schedule: Settings['schedule'];
  /** Never throws. */
  readonly tick: () => Promise<void>;
  /** Ends the service. */
  readonly signal: AbortSignal;
  /** Called with messages of the scheduler itself. */
  readonly logger: Logger;
}

/**
 * Ticks at once, and then whenever any of the schedules says so; which steps are due is the tick's
 * own business. Until the signal aborts and the tick under way has ended.
 */
export async function serveTicks({ schedule, tick, signal, logger }: ServiceOptions): Promise<void> {
  const { timezone, ...expressions } = schedule;
  const { run, ended } = neverOverlapping(tick);
  const options = { timezone, logger, suppressMissedWarning: true };
  const tasks = [...new Set(Object.values(expressions))].map((expression) =>
    cron.schedule(expression, run, options),
  );
  try {
    void run();
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    for (const task of tasks) await task.destroy();
    await ended();
  }
}

/** A tick during another tick is dropped; what is due stays due. */
export function neverOverlapping(tick: () => Promise<void>) {
  const inTurn = pLimit(1);
  const run = async (): Promise<void> => {
    if (inTurn.activeCount + inTurn.pendingCount === 0) await inTurn(tick);
  };
  return { run, ended: () => inTurn(() => undefined) };
}

const POLL_WAITS = readSql(import.meta.url, 'statements/poll-waits.sql');

/**
 * Does the steps that are due by what is stored; undefined when none is. `serviceSince` is when the
 * service began.
 */
export async function tick(context: StepContext, serviceSince: Date): Promise<LoopOutcome | undefined> {
  const { warehouse, settings, now } = context;
  const at = now();
  const apply = settings.improve.mode === 'apply';
  const [poll] = await warehouse.query(POLL_WAITS, z.object({ waits: z.boolean() }), { apply, now: at });
  const runs = await readLastRuns(warehouse, at);
  const stored = {
    ...{ runs, pollWaits: poll?.waits ?? false, serviceSince },
    // If that cannot be determined, publishing reports why.
    isUpToDate: await isUpToDate(context).catch(() => false),
  };
  const due = dueSteps(settings.schedule, stored, at);
  if (due.size > 0) return runLoop(context, { apply, waitMs: 0, due });
  await sendAlerts(context);
  return undefined;
}
