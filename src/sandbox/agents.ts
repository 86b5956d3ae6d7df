import { addDays, addSeconds } from 'date-fns';
import type { Context } from 'hono';
import { z } from 'zod';
import { type AgentJob, LIMITS } from '../api/schema.js';
import { type SandboxContext, tooMany, withBody } from './access.js';
import type { JobOutcome, StateStore, StoredJob } from './state.js';

/** Pull requests are numbered from here, as jobs are from 0. */
const FIRST_PULL_REQUEST = 100;

/** The default order: a first batch of five shows a job of each kind but the archived one. */
export const DEFAULT_OUTCOMES: readonly JobOutcome[] = [
  ...(['pull-request', 'pull-request', 'no-change', 'pull-request', 'failed', 'archived'] as const),
];

const SOURCE = { repository: 'acme/docs', ref: 'main' } as const;
const MODEL = 'sandbox-writer-1';

const endedStatus = ({ outcome }: StoredJob): AgentJob['status'] =>
  outcome === 'failed' || outcome === 'archived' ? outcome : 'completed';

export const jobIdOf = (number: number): string => `job_${String(number).padStart(6, '0')}`;

export const pullRequestOf = (number: number): string =>
  `https://code.example.com/${SOURCE.repository}/pull/${FIRST_PULL_REQUEST + number}`;

const hasPullRequest = (outcome: JobOutcome): boolean => outcome === 'pull-request' || outcome === 'archived';

/** The job as the API shows it at `now` (2.1). A job is archived after its pull request was made. */
function jobAt(job: StoredJob, now: Date): AgentJob {
  const ended = now.getTime() >= Date.parse(job.endsAt);
  return {
    id: job.id,
    source: SOURCE,
    model: MODEL,
    createdAt: job.createdAt,
    status: ended ? endedStatus(job) : 'active',
    prLink: ended && hasPullRequest(job.outcome) ? pullRequestOf(job.number) : null,
    archivedAt: ended && job.outcome === 'archived' ? job.endsAt : null,
  };
}

/** The page of a job, which its prompt quotes on a line of its own. */
export const pathOf = ({ prompt }: StoredJob): string | undefined => /^"(\/.*)"$/m.exec(prompt)?.[1];

const REVIEWED_AFTER_DAYS = 3;
/** One in so many pull requests is closed without being merged. */
const REJECTED = 7;

/** When people merge or close the pull request of a job; both null if it never has one. */
export function reviewAt({ number, outcome, createdAt, pullRequestFrom }: StoredJob) {
  if (!hasPullRequest(outcome)) return { mergedAt: null, closedAt: null };
  const at = addDays(new Date(pullRequestFrom ?? createdAt), REVIEWED_AFTER_DAYS);
  return number % REJECTED === 0 ? { mergedAt: null, closedAt: at } : { mergedAt: at, closedAt: at };
}

interface AgentsOptions {
  readonly state: StateStore;
  readonly now: () => Date;
  readonly outcomes: readonly JobOutcome[];
  readonly jobSeconds: number;
  readonly usesPerHour: number;
}

const promptSchema = z.object(
  {
    prompt: z
      .string({ error: 'prompt must be a string' })
      .min(LIMITS.promptMin, { error: 'prompt must not be empty' }),
  },
  { error: 'the body must be a JSON object' },
);

const unknownJob = (c: SandboxContext): Response => c.json({ error: 'Job not found' }, 404);

/**
 * The project's background agents: the routes that create a job, send it a message and get it (4.1
 * to 4.3).
 */
export function createAgents({ state, now, outcomes, jobSeconds, usesPerHour }: AgentsOptions) {
  const jobs = (): readonly StoredJob[] => state.read().jobs;
  const find = (c: SandboxContext) => jobs().find(({ id }) => id === c.req.param('id'));

  /**
   * Work takes between half of `jobSeconds` and all of it, so that the jobs of a batch end at
   * different times.
   */
  const endOfWork = (number: number): string =>
    addSeconds(now(), (jobSeconds * (2 + (number % 3))) / 4).toISOString();

  const take = (c: SandboxContext, status: 200 | 201, jobFor: (prompt: string) => StoredJob | undefined) =>
    withBody(c, promptSchema, ({ prompt }) => {
      const job = jobFor(prompt);
      if (job === undefined) return unknownJob(c);
      const current = state.read();
      // Prompts accepted: creates and messages together.
      const uses = current.jobs.flatMap(({ createdAt, messages }) => [{ createdAt }, ...messages]);
      const times = uses.map(({ createdAt }) => new Date(createdAt));
      const refusal = tooMany(c, times, usesPerHour, now());
      if (refusal !== undefined) return refusal;
      const others = current.jobs.filter(({ id }) => id !== job.id);
      state.write({ ...current, jobs: [...others, job].sort((a, b) => a.number - b.number) });
      return c.json<AgentJob>(jobAt(job, now()), status);
    });
  return {
    jobs,
    create: (c: SandboxContext) =>
      take(c, 201, (prompt) => {
        const number = jobs().length + 1;
        return {
          id: jobIdOf(number),
          number,
          prompt,
          messages: [],
          createdAt: now().toISOString(),
          endsAt: endOfWork(number),
          outcome: outcomes[(number - 1) % outcomes.length] ?? 'pull-request',
        };
      }),
    /** A message reopens a job however it ended, and always leads to a pull request. */
    message: (c: SandboxContext) =>
      take(c, 200, (prompt) => {
        const job = find(c);
        if (job === undefined) return undefined;
        const createdAt = now().toISOString();
        const messages = [...job.messages, { prompt, createdAt }];
        const reopened = {
          ...job,
          messages,
          endsAt: endOfWork(job.number),
          outcome: 'pull-request' as const,
        };
        // Otherwise, it would have been merged days ago, and change views that were already shown.
        return hasPullRequest(job.outcome) ? reopened : { ...reopened, pullRequestFrom: createdAt };
      }),
    get: (c: SandboxContext): Response => {
      const job = find(c);
      return job === undefined ? unknownJob(c) : c.json<AgentJob>(jobAt(job, now()));
    },
  };
}

/** The route of the pull request of a job, in the form of GitHub. */
export const getPullRequest =
  (state: StateStore, now: () => Date) =>
  (c: Context): Response => {
    const number = Number(c.req.param('number')) - FIRST_PULL_REQUEST;
    const job = state.read().jobs.find((candidate) => candidate.number === number);
    if (job === undefined) return c.json({ message: 'Not Found' }, 404);
    const { mergedAt, closedAt } = reviewAt(job);
    const isOver = closedAt !== null && closedAt <= now();
    const [merged_at, closed_at] = isOver ? [mergedAt, closedAt] : [null, null];
    return c.json({
      state: isOver ? 'closed' : 'open',
      merged_at,
      closed_at,
      updated_at: closed_at ?? job.createdAt,
      base: { ref: SOURCE.ref, repo: { default_branch: SOURCE.ref } },
    });
  };
