import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addHours, addSeconds, startOfISOWeek, subWeeks } from 'date-fns';
import type { Day } from '../day.js';
import type { JournalEntry } from '../effects/entries.js';
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

/** How the workspace names a job in its journal. */
type ReferenceOf = (project: string, path: string, plannedAt: Date) => string;

/** What the workspace knows of them, as its journal has it. */
export const pastEntries = (now: Date, referenceOf: ReferenceOf): JournalEntry[] =>
  PAST.map(({ weeksAgo, path, outcome, rank }, index) => {
    const at = plannedAt(now, weeksAgo);
    const hasPullRequest = outcome === 'pull-request' || outcome === 'archived';
    return {
      effect: 'job',
      event: 'sent',
      ref: referenceOf(SANDBOX.projectId, path, at),
      at: at.toISOString(),
      attempt: at.toISOString(),
      plannedAt: at.toISOString(),
      project: SANDBOX.projectId,
      path,
      prompt: promptFor(path),
      reason: `#${rank} of the most-read pages`,
      evidence: {},
      remoteId: jobIdOf(index + 1),
      remoteStatus: outcome === 'failed' || outcome === 'archived' ? outcome : 'completed',
      ...(hasPullRequest && { prLink: pullRequestOf(index + 1) }),
    };
  });

/** What happened outside, as the text of `notes.yaml`. */
export const pastNotes = (firstDay: Day): string =>
  simulatedNotes(firstDay)
    .map(
      ({ date, text, ...note }) =>
        `- { date: ${date}, text: "${text}"${'break' in note ? ', break: true' : ''} }\n`,
    )
    .join('');
