import { addSeconds } from 'date-fns';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { AgentJob } from '../api/schema.js';
import { type Day, parseDay } from '../day.js';
import { messageOf, StorageError } from '../errors.js';

const JOB_OUTCOMES = ['pull-request', 'no-change', 'failed', 'archived'] as const;
/** How an agent's work can end. */
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

/** The default order: a first batch of five shows a job of each kind but the archived one. */
export const DEFAULT_OUTCOMES: readonly JobOutcome[] = [
  'pull-request',
  'pull-request',
  'no-change',
  'pull-request',
  'failed',
  'archived',
];

const SOURCE = { repository: 'acme/docs', ref: 'main' } as const;
const MODEL = 'sandbox-writer-1';

const instant = z.iso.datetime();

const storedJobSchema = z.object({
  id: z.string(),
  number: z.int().min(1),
  prompt: z.string(),
  createdAt: instant,
  messages: z.array(z.object({ prompt: z.string(), createdAt: instant })),
  /** Decided when the work starts: the agent is active until `endsAt`, and then has this `outcome`. */
  endsAt: instant,
  outcome: z.enum(JOB_OUTCOMES),
});
/** A stored job. Its status is not stored, because it follows from the clock. */
export type StoredJob = z.infer<typeof storedJobSchema>;

/** The agent's work on a prompt. */
interface Work {
  readonly prompt: string;
  readonly now: Date;
  /** Work takes between half of this and all of it, so that the jobs of a batch end at different times. */
  readonly jobSeconds: number;
}

const endOfWork = (number: number, { now, jobSeconds }: Work): string =>
  addSeconds(now, (jobSeconds * (2 + (number % 3))) / 4).toISOString();

/** A new job, the `number`-th of the project. */
export function startJob(number: number, outcome: JobOutcome, work: Work): StoredJob {
  return {
    id: `job_${String(number).padStart(6, '0')}`,
    number,
    prompt: work.prompt,
    createdAt: work.now.toISOString(),
    messages: [],
    endsAt: endOfWork(number, work),
    outcome,
  };
}

/** A follow-up reopens a job however it ended, and always leads to a pull request. */
export function followUp(job: StoredJob, work: Work): StoredJob {
  const messages = [...job.messages, { prompt: work.prompt, createdAt: work.now.toISOString() }];
  return { ...job, messages, endsAt: endOfWork(job.number, work), outcome: 'pull-request' };
}

const ENDED_STATUS = {
  'pull-request': 'completed',
  'no-change': 'completed',
  failed: 'failed',
  archived: 'archived',
} as const;

/** The job as the API shows it at `now` (2.1). A job is archived after its pull request was made. */
export function jobAt(job: StoredJob, now: Date): AgentJob {
  const ended = now.getTime() >= Date.parse(job.endsAt);
  const changedFiles = job.outcome === 'pull-request' || job.outcome === 'archived';
  const prLink = `https://code.example.com/${SOURCE.repository}/pull/${100 + job.number}`;
  return {
    id: job.id,
    status: ended ? ENDED_STATUS[job.outcome] : 'active',
    source: SOURCE,
    model: MODEL,
    prLink: ended && changedFiles ? prLink : null,
    createdAt: job.createdAt,
    archivedAt: ended && job.outcome === 'archived' ? job.endsAt : null,
  };
}

/** When a project's prompts were accepted, for the hourly limit. */
export const usesOf = (jobs: readonly StoredJob[]): Date[] =>
  jobs.flatMap((job) => [job, ...job.messages].map(({ createdAt }) => new Date(createdAt)));

const stateSchema = z.object({
  version: z.literal(1),
  seed: z.int(),
  firstDay: z.string().transform((text, context): Day => {
    const parsed = parseDay(text);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: 'custom', message: 'not a day' });
    return z.NEVER;
  }),
  jobs: z.array(storedJobSchema),
});
/** The state of a sandbox. Traffic is not stored, because it follows from `seed` and `firstDay`. */
export type SandboxState = z.infer<typeof stateSchema>;

/** The store of the state. `read` is always current, because another process may have written it. */
export interface StateStore {
  readonly read: () => SandboxState;
  readonly write: (state: SandboxState) => void;
}

/** In-memory state. */
export function memoryState(initial: SandboxState): StateStore {
  let state = initial;
  return {
    read: () => state,
    write: (next) => {
      state = next;
    },
  };
}

function load(file: string): SandboxState | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined;
    throw new StorageError(`Cannot read the sandbox's state: ${messageOf(cause)}`, { cause });
  }
  try {
    return stateSchema.parse(JSON.parse(text));
  } catch (cause) {
    const advice = 'Delete it to start a new sandbox.';
    throw new StorageError(`${file} is not the state of a sandbox of this version. ${advice}`, {
      cause,
    });
  }
}

/** Written to a temporary file and renamed, so that a reader never sees a partial state. */
function save(file: string, state: SandboxState): void {
  const beside = `${file}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(beside, JSON.stringify(state, null, 1), { mode: 0o600 });
    renameSync(beside, file);
  } catch (cause) {
    throw new StorageError(`Cannot write the sandbox's state: ${messageOf(cause)}`, { cause });
  }
}

/**
 * State in a JSON file, which starts as `initial`. A request reads, changes and writes it
 * synchronously, so requests of one process cannot interfere; two processes that write in the same
 * millisecond can.
 */
export function fileState(file: string, initial: SandboxState): StateStore {
  if (load(file) === undefined) save(file, initial);
  return {
    read: () => load(file) ?? initial,
    write: (state) => {
      save(file, state);
    },
  };
}
