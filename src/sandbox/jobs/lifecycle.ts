import { addSeconds } from 'date-fns';
import { z } from 'zod';
import type { AgentJob } from '../../api/schema.js';
import { SANDBOX } from '../defaults.js';

/** How an agent's work can end. */
const JOB_OUTCOMES = ['pull-request', 'no-change', 'failed', 'archived'] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

/** The default order, so that a first batch of five already shows a job of each kind but the archived one. */
export const DEFAULT_OUTCOMES: readonly JobOutcome[] = [
  'pull-request',
  'pull-request',
  'no-change',
  'pull-request',
  'failed',
  'archived',
];

const instant = z.iso.datetime();

export const storedJobSchema = z.object({
  id: z.string(),
  number: z.int().min(1),
  prompt: z.string(),
  createdAt: instant,
  messages: z.array(z.object({ prompt: z.string(), createdAt: instant })),
  /** Decided when the work starts: the agent is active until `endsAt`, and then `outcome` holds. */
  endsAt: instant,
  outcome: z.enum(JOB_OUTCOMES),
});
/** A job as it is remembered. Its status is not stored but follows from the clock. */
export type StoredJob = z.infer<typeof storedJobSchema>;

/** What the work on the next prompt is like. */
export interface Work {
  readonly prompt: string;
  readonly now: Date;
  /** Work lasts between half of this and all of it, so that a batch does not end at once. */
  readonly jobSeconds: number;
}

const endOfWork = (number: number, { now, jobSeconds }: Work): string =>
  addSeconds(now, (jobSeconds * (2 + (number % 3))) / 4).toISOString();

/** A new job, the `number`-th of the project. */
export function startJob(number: number, outcome: JobOutcome, work: Work): StoredJob {
  const id = `job_${String(number).padStart(6, '0')}`;
  const createdAt = work.now.toISOString();
  return {
    id,
    number,
    prompt: work.prompt,
    createdAt,
    messages: [],
    endsAt: endOfWork(number, work),
    outcome,
  };
}

/** A follow-up reopens a job, whatever its end; this time the agent ends with the job's pull request. */
export function followUp(job: StoredJob, work: Work): StoredJob {
  const message = { prompt: work.prompt, createdAt: work.now.toISOString() };
  const messages = [...job.messages, message];
  return { ...job, messages, endsAt: endOfWork(job.number, work), outcome: 'pull-request' };
}

const ENDED_STATUS = {
  'pull-request': 'completed',
  'no-change': 'completed',
  failed: 'failed',
  archived: 'archived',
} as const;

/** The job as the interface tells it at `now` (2.1). A job is archived after its pull request was made. */
export function jobAt(job: StoredJob, now: Date): AgentJob {
  const ended = now.getTime() >= Date.parse(job.endsAt);
  const changedFiles = job.outcome === 'pull-request' || job.outcome === 'archived';
  return {
    id: job.id,
    status: ended ? ENDED_STATUS[job.outcome] : 'active',
    source: { repository: SANDBOX.repository, ref: SANDBOX.ref },
    model: SANDBOX.model,
    prLink:
      ended && changedFiles
        ? `https://code.example.com/${SANDBOX.repository}/pull/${100 + job.number}`
        : null,
    createdAt: job.createdAt,
    archivedAt: ended && job.outcome === 'archived' ? job.endsAt : null,
  };
}

/** The instants at which a project's prompts were accepted: what the hourly limit counts. */
export const usesOf = (jobs: readonly StoredJob[]): Date[] =>
  jobs.flatMap((job) => [job, ...job.messages].map(({ createdAt }) => new Date(createdAt)));
