import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addHours, addSeconds, startOfISOWeek, subWeeks } from 'date-fns';
import { changeJob, planJob, referenceOf } from '../agents/jobs.js';
import { NO_EVIDENCE } from '../agents/reasons.js';
import type { Day } from '../day.js';
import { readJob } from '../state/jobs.js';
import type { State } from '../state/state.js';
import { jobIdOf, pullRequestOf } from './agents.js';
import { type JobOutcome, SANDBOX, type StoredJob } from './state.js';
import { simulatedNotes } from './traffic/traffic.js';

/** The jobs that a new sandbox remembers: four improved a page, one changed nothing, and one failed. */
const PAST: readonly { weeksAgo: number; path: string; outcome: JobOutcome; rank: number }[] = [
  { weeksAgo: 12, path: '/guides/rate-limits', outcome: 'pull-request', rank: 9 },
  { weeksAgo: 12, path: '/concepts/projects', outcome: 'no-change', rank: 10 },
  { weeksAgo: 10, path: '/guides/pagination', outcome: 'pull-request', rank: 16 },
  { weeksAgo: 10, path: '/sdks/python', outcome: 'failed', rank: 8 },
  { weeksAgo: 9, path: '/guides/deploy', outcome: 'pull-request', rank: 14 },
  { weeksAgo: 9, path: '/guides/idempotency', outcome: 'archived', rank: 20 },
];

const promptFor = (path: string): string => `Improve this page of the documentation:\n\n"${path}"\n`;

/** Mondays at four, when the pages for agents are chosen. */
const plannedAt = (now: Date, weeksAgo: number): Date =>
  addHours(subWeeks(startOfISOWeek(new UTCDate(now)), weeksAgo), 4);

/** What the platform knows of them. */
export const pastJobs = (now: Date): StoredJob[] =>
  PAST.map(({ weeksAgo, path, outcome }, index) => {
    const createdAt = plannedAt(now, weeksAgo);
    return {
      id: jobIdOf(index + 1),
      number: index + 1,
      prompt: promptFor(path),
      createdAt: createdAt.toISOString(),
      messages: [],
      endsAt: addSeconds(createdAt, SANDBOX.jobSeconds).toISOString(),
      outcome,
    };
  });

/** Stores what the workspace knows of them, in a transaction. */
export function enterPastJobs(state: State, now: Date): void {
  for (const [index, { weeksAgo, path, outcome, rank }] of PAST.entries()) {
    const at = plannedAt(now, weeksAgo);
    const planned = planJob(state, {
      reference: referenceOf(SANDBOX.projectId, path, at),
      project: SANDBOX.projectId,
      path,
      is_approved: false,
      reason: `#${rank} of the most-read pages`,
      prompt: promptFor(path),
      planned_at: at,
      ...NO_EVIDENCE,
    });
    const job = readJob(state, planned);
    if (job === undefined) continue;
    const id = jobIdOf(index + 1);
    const hasPullRequest = outcome === 'pull-request' || outcome === 'archived';
    const remote = {
      id,
      status: outcome === 'failed' || outcome === 'archived' ? outcome : 'completed',
      prLink: hasPullRequest ? pullRequestOf(index + 1) : null,
    };
    const sending = changeJob(state, job, { event: 'submit', now: at, cause: 'about to be sent' });
    changeJob(state, sending, { event: 'sent', now: at, cause: `created as ${id}`, remote });
  }
}

/** What happened outside, as the text of `notes.yaml`. */
export const pastNotes = (firstDay: Day): string =>
  simulatedNotes(firstDay)
    .map(
      ({ date, text, ...note }) =>
        `- { date: ${date}, text: "${text}"${'break' in note ? ', break: true' : ''} }\n`,
    )
    .join('');
