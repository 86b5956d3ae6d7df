import type { StoredJob } from '../../../src/sandbox/state.js';
import type { Books } from '../books.js';
import { repeated } from './records.js';

/** A prompt names its page on a separate line. */
const pageOf = (prompt: string): string => /^"(\/.*)"$/m.exec(prompt)?.[1] ?? prompt;

const DAY_MS = 86_400_000;

/** Whether a job may follow another for the same page: a week after the day on which that failed. */
const isOverdue = (earlier: StoredJob, job: StoredJob): boolean =>
  earlier.outcome === 'failed' && Date.parse(job.createdAt) - Date.parse(earlier.endsAt) > 6 * DAY_MS;

/** Jobs and messages that the platform got twice, or that the state does not account for. */
export function jobFaults({ jobs, messages }: Books, remote: readonly StoredJob[]): string[] {
  const arrived = remote.flatMap((job) => job.messages.map(({ prompt }) => ({ to: job.id, prompt })));
  return [
    ...repeated(remote.map(({ prompt }) => `the job “${prompt}”`)),
    ...remote.flatMap((job, index) => {
      const earlier = remote.slice(0, index).findLast(({ prompt }) => pageOf(prompt) === pageOf(job.prompt));
      return earlier === undefined || isOverdue(earlier, job) ? [] : [`${pageOf(job.prompt)} got two jobs`];
    }),
    ...repeated(arrived.map(({ to, prompt }) => `“${prompt}” to ${to}`)),
    ...remote.flatMap(({ id, prompt }) => {
      const known = jobs.filter((job) => job.remote_id === id && job.prompt === prompt);
      const suspected = jobs.filter((job) => job.prompt === prompt && isOpen(job) && job.remote_id === null);
      return known.length + suspected.length === 1
        ? []
        : [`${id} is known ${known.length + suspected.length} times`];
    }),
    ...arrived.flatMap(({ to, prompt }) => {
      const known = messages.filter(
        (message) => message.prompt === prompt && remoteOf(jobs, message.job) === to,
      );
      return known.length === 1 && known.every((message) => message.state === 'sent' || isOpen(message))
        ? []
        : [`“${prompt}” arrived at ${to} and is ${known.map(({ state }) => state).join() || 'unknown'}`];
    }),
    ...jobs.flatMap(({ id, remote_id }) =>
      remote_id === null || remote.some((job) => job.id === remote_id)
        ? []
        : [`job ${id} is ${remote_id}, which does not exist`],
    ),
    ...messages.flatMap(({ id, job, state, prompt }) =>
      state !== 'sent' ||
      arrived.some(({ to, prompt: text }) => to === remoteOf(jobs, job) && text === prompt)
        ? []
        : [`message ${id} is sent, but did not arrive`],
    ),
  ];
}

const isOpen = ({ state }: { readonly state: string }): boolean => state === 'sending' || state === 'unknown';

const remoteOf = (jobs: Books['jobs'], id: number): string | undefined =>
  jobs.find((job) => job.id === id)?.remote_id ?? undefined;

/** What is still open after the platform worked for days and a person settled what only a person can. */
export const openJobs = ({ jobs, messages }: Books): string[] => [
  ...jobs
    .filter(({ state }) => ['planned', 'sending', 'active', 'unknown'].includes(state))
    .map(({ id, state }) => `job ${id} is ${state}`),
  ...messages
    .filter(({ state }) => ['planned', 'sending', 'unknown'].includes(state))
    .map(({ id, state }) => `message ${id} is ${state}`),
];
