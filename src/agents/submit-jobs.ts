import { addMilliseconds } from 'date-fns';
import type { Warehouse } from '../warehouse/warehouse.js';
import { changeJob, type Job, readJobs } from './ledger.js';
import { type Intent, submitAll, type SubmitOutcome, type SubmitTask } from './submit.js';

/** Creates the planned jobs of a project on the platform. */
export async function submitJobs(task: SubmitTask): Promise<SubmitOutcome> {
  const planned = (await readJobs(task.warehouse, task.project)).filter((job) => job.state === 'planned');
  return submitAll(
    task,
    'jobs',
    planned.map((job) => creationOf(task, job)),
  );
}

function creationOf({ warehouse, client, pollDelayMs }: SubmitTask, planned: Job): Intent {
  let job = planned;
  return {
    begin: async (now) => {
      job = await changeJob(warehouse, job, { event: { kind: 'submit' }, now, cause: 'about to be sent' });
    },
    post: (signal) => client.createJob(job.prompt, signal),
    accepted: (remote, now) =>
      changeJob(warehouse, job, {
        event: { kind: 'accepted', status: remote.status },
        ...{ now, remote, cause: `created as ${remote.id}`, nextPollAt: addMilliseconds(now, pollDelayMs) },
      }),
    failed: (outcome, words, now) =>
      changeJob(warehouse, job, { event: { kind: outcome }, now, cause: words, note: words }),
  };
}

/**
 * Marks jobs that a killed process left `submitting` as `unconfirmed`: their request may have arrived. Sound because
 * only the holder of the live database submits.
 */
export async function settleInterruptedJobs(
  warehouse: Warehouse,
  project: string,
  now: Date,
): Promise<Job[]> {
  const jobs = await readJobs(warehouse, project);
  const interrupted = jobs.filter((job) => job.state === 'submitting');
  const cause = 'the process ended before the reply was recorded';
  return Promise.all(
    interrupted.map((job) =>
      changeJob(warehouse, job, { event: { kind: 'outcome-unknown' }, now, cause, note: cause }),
    ),
  );
}
