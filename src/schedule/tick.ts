import { z } from 'zod';
import { readSql } from '../warehouse/query.js';
import { mailAlerts } from './alerts.js';
import type { StepContext } from './context.js';
import { dueSteps } from './due-steps.js';
import { type LoopOutcome, runLoop } from './loop.js';
import { hasUnpublishedEffects, readLastRuns } from './runs.js';

const POLL_WAITS = readSql(import.meta.url, 'statements/poll-waits.sql');

/** Does the steps that are due by what is stored; undefined when none is. `serviceSince` is when the service began. */
export async function tick(context: StepContext, serviceSince: Date): Promise<LoopOutcome | undefined> {
  const { warehouse, settings, now } = context;
  const at = now();
  const apply = settings.improve.mode === 'apply';
  const [poll] = await warehouse.query(POLL_WAITS, z.object({ waits: z.boolean() }), { apply, now: at });
  const runs = await readLastRuns(warehouse, at);
  const stored = {
    ...{ runs, pollWaits: poll?.waits ?? false, serviceSince },
    hasUnpublishedEffects: await hasUnpublishedEffects(warehouse, at),
  };
  const due = dueSteps(settings.schedule, stored, at);
  if (due.size > 0) return runLoop(context, { apply, waitMs: 0, due });
  await mailAlerts(context);
  return undefined;
}
