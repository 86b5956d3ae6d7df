import { addMilliseconds } from 'date-fns';
import type { AgentJob } from '../api/schema.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { messageIntent } from './journal.js';
import { changeJobWithin, isRemoteJob, type Job, readJobs, type RemoteJob } from './ledger.js';
import { changeMessageWithin, type Message, type MessageChange, readMessages } from './messages.js';
import { type Intent, submitAll, type SubmitOutcome, type SubmitTask } from './submit.js';

/** Sends the planned follow-up messages of a project. */
export async function submitMessages(task: SubmitTask): Promise<SubmitOutcome> {
  const { warehouse, project } = task;
  const jobs = new Map((await readJobs(warehouse, project)).filter(isRemoteJob).map((job) => [job.id, job]));
  const intents = (await readMessages(warehouse, project)).flatMap((message) => {
    const job = jobs.get(message.job);
    return message.state === 'planned' && job !== undefined ? [sendingOf(task, message, job)] : [];
  });
  return submitAll(task, 'messages', intents);
}

function sendingOf(
  { warehouse, journal, client, pollDelayMs }: SubmitTask,
  planned: Message,
  job: RemoteJob,
): Intent {
  let message = planned;
  const change = (next: MessageChange) =>
    warehouse.transaction((transaction) => changeMessageWithin(transaction, message, next));
  return {
    begin: (now) =>
      journal.depart(messageIntent(message), now, async () => {
        message = await change({ event: 'submit', now, cause: 'about to be sent' });
      }),
    post: (departure, signal) => client.sendMessage(job.remote_id, message.prompt, departure, signal),
    accepted: (remote, now) =>
      settleAsSent(warehouse, message, job, {
        ...{ event: 'accepted', now, remote, cause: 'accepted by the platform' },
        nextPollAt: addMilliseconds(now, pollDelayMs),
      }),
    failed: async (outcome, words, now) => {
      await change({ event: outcome, now, cause: words, note: words });
      return job;
    },
  };
}

/** A message that arrived reopens its job in the same transaction, and the job is polled until it ends again. */
export const settleAsSent = (
  warehouse: Warehouse,
  message: Message,
  job: Job,
  {
    nextPollAt,
    remote,
    ...change
  }: MessageChange & { readonly nextPollAt: Date; readonly remote?: AgentJob },
): Promise<Job> =>
  warehouse.transaction(async (transaction) => {
    await changeMessageWithin(transaction, message, change);
    const cause = `message ${message.id} was sent`;
    const event = { kind: 'followed-up' } as const;
    const now = change.now;
    return changeJobWithin(transaction, job, { event, now, cause, nextPollAt, ...(remote && { remote }) });
  });
