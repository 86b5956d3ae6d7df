import { addMilliseconds, min } from 'date-fns';
import { lastScheduled } from '../config/cron.js';
import type { Settings } from '../config/schema.js';
import type { LastRun, StepName } from '../state/runs.js';

/** The stored state of the work. */
interface WorkState {
  readonly runs: readonly LastRun[];
  /** Whether the Parquet dataset has everything that is stored, or there is none. */
  readonly isUpToDate: boolean;
  /** Whether a job is due to be polled, or a prompt waits to be sent. */
  readonly pollWaits: boolean;
  /** Whether a person approved a job or wrote a message since the poll step last began. */
  readonly hasNewPrompts: boolean;
  /**
   * When the service began: after fixing a problem, people restart it, and steps that failed before
   * are then tried at once.
   */
  readonly serviceSince: Date;
}

/** The delay after a first failure; each further failure in a row doubles it, up to the longest. */
const FIRST_DELAY_MS = 60_000;
const LONGEST_DELAY_MS = 3_600_000;

/** No pause is longer: an hour, and the time until requests of that hour are free. */
const LONGEST_PAUSE_MS = 2 * 3_600_000;

const SCHEDULED_STEPS = ['export', 'improve', 'poll', 'report'] as const;

/**
 * The steps that are due: those last scheduled after the start of their latest successful run, so a
 * step that missed several runs catches up with one. A step that left something waiting runs again at
 * the time that it gave; polling, which sends what people approved, does not wait for its schedule then.
 * One that failed or was paused is retried at the time that the platform or the mail server gave, or else with growing
 * delays. Publishing is due with any other step, and while the dataset is not up to date.
 */
export function dueSteps(
  schedule: Settings['schedule'],
  { runs, pollWaits, hasNewPrompts, isUpToDate, serviceSince }: WorkState,
  now: Date,
): ReadonlySet<StepName> {
  const last = new Map(runs.map((run) => [run.step, run]));
  const isDone = (step: (typeof SCHEDULED_STEPS)[number]) => {
    if (step === 'poll' && hasNewPrompts) return false;
    const { done_at: doneAt = null, outcome, resume_at: resumeAt = null } = last.get(step) ?? {};
    if (outcome === 'done' && resumeAt !== null && resumeAt <= now) return false;
    return doneAt !== null && doneAt >= lastScheduled(schedule[step], schedule.timezone, now);
  };
  const mayBegin = (step: StepName) => {
    const run = last.get(step);
    // If the clock was set back since, it is not known when the service began.
    const since = serviceSince <= now ? serviceSince : new Date(0);
    return run === undefined || retryAt(run, since) <= now;
  };
  const due = new Set<StepName>(
    SCHEDULED_STEPS.filter((step) => (step !== 'poll' || pollWaits) && !isDone(step) && mayBegin(step)),
  );
  if ((due.size > 0 || !isUpToDate) && mayBegin('publish')) due.add('publish');
  return due;
}

/**
 * When a step that did not succeed is tried again. After a restart that is at once, because the settings that caused a pause
 * may have changed; the counted requests show whether the platform still wants one.
 */
function retryAt({ outcome, started_at, resume_at, failures }: LastRun, serviceSince: Date): Date {
  if ((outcome !== 'failed' && outcome !== 'later') || started_at < serviceSince) return started_at;
  if (outcome === 'later' && resume_at !== null)
    // A later time was stored by a clock that was ahead.
    return min([resume_at, addMilliseconds(started_at, LONGEST_PAUSE_MS)]);
  return addMilliseconds(started_at, Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1)));
}
