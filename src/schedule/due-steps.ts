import { lastScheduled } from '../config/cron.js';
import type { Settings } from '../config/schema.js';
import type { LastRun, StepName } from './runs.js';

/** What is stored of the work done and waiting. */
export interface StoredState {
  readonly runs: readonly LastRun[];
  /** Whether a job is to be asked for, or a prompt waits to be sent. */
  readonly pollWaits: boolean;
}

const SCHEDULED_STEPS = ['export', 'improve', 'poll', 'report'] as const;

/**
 * The steps that are due: those whose latest scheduled moment lies after the start of their last run that came to its
 * end. So what was missed is made up for once, however much was missed, and what failed or had to wait is tried again;
 * but not before the moment that the budget or the server named. Publishing is due when another step began after it.
 */
export function dueSteps(
  schedule: Settings['schedule'],
  { runs, pollWaits }: StoredState,
  now: Date,
): ReadonlySet<StepName> {
  const last = new Map(runs.map((run) => [run.step, run]));
  const due = new Set<StepName>(
    SCHEDULED_STEPS.filter(
      (step) =>
        (step !== 'poll' || pollWaits) &&
        isDue(last.get(step), lastScheduled(schedule[step], schedule.timezone, now), now),
    ),
  );
  if (due.size > 0 || isUnpublished(runs)) due.add('publish');
  return due;
}

function isDue(run: LastRun | undefined, scheduledAt: Date, now: Date): boolean {
  if (run === undefined) return true;
  const isWaiting = run.outcome === 'later' && run.resume_at !== null && run.resume_at > now;
  return !isWaiting && (run.done_at === null || run.done_at < scheduledAt);
}

/** Whether a step began after the last publishing: it was stopped before what it changed could be published. */
export function isUnpublished(runs: readonly LastRun[]): boolean {
  const publishedAt = runs.find(({ step }) => step === 'publish')?.done_at ?? new Date(0);
  return runs.some(({ step, started_at }) => step !== 'publish' && started_at > publishedAt);
}
