import { z } from 'zod';
import { type AgentJob, LIMITS } from '../api/schema.js';
import { badRequest, bodyOf, invalid, type SandboxContext, secondsUntilFree, tooMany } from './access.js';
import {
  followUp,
  jobAt,
  type JobOutcome,
  startJob,
  type StateStore,
  type StoredJob,
  usesOf,
} from './jobs.js';

export interface AgentsOptions {
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

/** The project's background agents: the routes that create a job, send it a message and get it (4.1 to 4.3). */
export function createAgents({ state, now, outcomes, jobSeconds, usesPerHour }: AgentsOptions) {
  const jobs = (): readonly StoredJob[] => state.read().jobs;
  const find = (c: SandboxContext) => jobs().find(({ id }) => id === c.req.param('id'));

  const take = async (
    c: SandboxContext,
    status: 200 | 201,
    jobFor: (prompt: string) => StoredJob | undefined,
  ): Promise<Response> => {
    const body = await bodyOf(c);
    if (body === undefined) return badRequest(c, ['the body is not JSON']);
    const parsed = promptSchema.safeParse(body);
    if (!parsed.success) return invalid(c, parsed.error);
    const job = jobFor(parsed.data.prompt);
    if (job === undefined) return unknownJob(c);
    const current = state.read();
    const wait = secondsUntilFree(usesOf(current.jobs), usesPerHour, now());
    if (wait !== undefined) return tooMany(c, wait);
    state.write({
      ...current,
      jobs: [...current.jobs.filter(({ id }) => id !== job.id), job].sort(byNumber),
    });
    return c.json<AgentJob>(jobAt(job, now()), status);
  };
  return {
    jobs,
    create: (c: SandboxContext) =>
      take(c, 201, (prompt) => {
        const number = jobs().length + 1;
        const outcome = outcomes[(number - 1) % outcomes.length] ?? 'pull-request';
        return startJob(number, outcome, { prompt, now: now(), jobSeconds });
      }),
    message: (c: SandboxContext) =>
      take(c, 200, (prompt) => {
        const job = find(c);
        return job && followUp(job, { prompt, now: now(), jobSeconds });
      }),
    get: (c: SandboxContext): Response => {
      const job = find(c);
      return job === undefined ? unknownJob(c) : c.json<AgentJob>(jobAt(job, now()));
    },
  };
}

export type Agents = ReturnType<typeof createAgents>;

const byNumber = (a: StoredJob, b: StoredJob): number => a.number - b.number;
