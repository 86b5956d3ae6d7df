import type { Job } from '../state/jobs.js';
import type { JobMessage } from '../state/messages.js';

/** A job that has been active for much longer than such jobs usually are. */
export interface LateJob {
  readonly id: number;
  readonly project: string;
  readonly path: string;
  /** Since it was sent, or the last message to it. */
  readonly since: Date;
  /** How long the jobs that have ended usually took; null without any. */
  readonly usualMs: number | null;
}

/** A day: agents take minutes or hours. */
const SHORTEST_MS = 24 * 3_600_000;
const TIMES_USUAL = 3;

/** The jobs that are late, the longest active first: most likely the platform has lost them, or waits for a person. */
export function lateJobs(jobs: readonly Job[], messages: readonly JobMessage[], now: Date): LateJob[] {
  const usualMs = usualTime(jobs);
  const limit = Math.max(SHORTEST_MS, TIMES_USUAL * (usualMs ?? 0));
  return jobs
    .filter(({ state }) => state === 'active')
    .map(({ id, project, path, submitted_at, planned_at }) => {
      const own = messages.filter(({ job }) => job === id).flatMap((message) => message.submitted_at ?? []);
      const since = own.at(-1) ?? submitted_at ?? planned_at;
      return { id, project, path, since, usualMs };
    })
    .filter(({ since }) => now.getTime() - since.getTime() > limit)
    .sort((one, two) => one.since.getTime() - two.since.getTime());
}

/** The median. */
function usualTime(jobs: readonly Job[]): number | null {
  const times = jobs.flatMap(({ state, submitted_at, ended_at }) =>
    submitted_at === null || ended_at === null || state === 'refused'
      ? []
      : ended_at.getTime() - submitted_at.getTime(),
  );
  return times.sort((one, two) => one - two)[Math.floor(times.length / 2)] ?? null;
}
