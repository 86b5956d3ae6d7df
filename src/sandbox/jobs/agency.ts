import type { AgentJob } from '../../api/schema.js';
import { secondsUntilFree } from '../rolling-hour.js';
import type { StateStore } from '../state.js';
import { followUp, type JobOutcome, jobAt, startJob, type StoredJob, usesOf } from './lifecycle.js';

/** Why a prompt was not taken. */
type Refusal = { kind: 'unknown-job' } | { kind: 'rate-limited'; retryAfterSeconds: number };
export type Answer = { kind: 'taken'; job: AgentJob } | Refusal;

export interface AgencyOptions {
  readonly state: StateStore;
  readonly now: () => Date;
  readonly outcomes: readonly JobOutcome[];
  readonly jobSeconds: number;
  readonly usesPerHour: number;
}

/** The background agents of the project: takes prompts, remembers jobs, tells where each stands. */
export interface Agency {
  readonly create: (prompt: string) => Answer;
  readonly message: (id: string, prompt: string) => Answer;
  readonly get: (id: string) => AgentJob | undefined;
  readonly jobs: () => readonly StoredJob[];
}

export function createAgency({ state, now, outcomes, jobSeconds, usesPerHour }: AgencyOptions): Agency {
  const limited = (jobs: readonly StoredJob[]): Refusal | undefined => {
    const retryAfterSeconds = secondsUntilFree(usesOf(jobs), usesPerHour, now());
    return retryAfterSeconds === undefined ? undefined : { kind: 'rate-limited', retryAfterSeconds };
  };
  const take = (job: StoredJob, change: (jobs: readonly StoredJob[]) => StoredJob[]): Answer => {
    const current = state.read();
    state.write({ ...current, jobs: change(current.jobs) });
    return { kind: 'taken', job: jobAt(job, now()) };
  };
  return {
    create: (prompt) => {
      const { jobs } = state.read();
      const number = jobs.length + 1;
      const outcome = outcomes[(number - 1) % outcomes.length] ?? 'pull-request';
      const job = startJob(number, outcome, { prompt, now: now(), jobSeconds });
      return limited(jobs) ?? take(job, (known) => [...known, job]);
    },
    message: (id, prompt) => {
      const { jobs } = state.read();
      const found = jobs.find((job) => job.id === id);
      if (found === undefined) return { kind: 'unknown-job' };
      const job = followUp(found, { prompt, now: now(), jobSeconds });
      return limited(jobs) ?? take(job, (known) => known.map((other) => (other.id === id ? job : other)));
    },
    get: (id) => {
      const found = state.read().jobs.find((job) => job.id === id);
      return found && jobAt(found, now());
    },
    jobs: () => state.read().jobs,
  };
}
