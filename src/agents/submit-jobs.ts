import { addMilliseconds } from 'date-fns';
import { jobIntent } from './journal.js';
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

function creationOf({ warehouse, journal, client, pollDelayMs }: SubmitTask, planned: Job): Intent {
  let job = planned;
  return {
    begin: (now) =>
      journal.depart(jobIntent(job), now, async () => {
        job = await changeJob(warehouse, job, { event: { kind: 'submit' }, now, cause: 'about to be sent' });
      }),
    post: (departure, signal) => client.createJob(job.prompt, departure, signal),
    accepted: (remote, now) =>
      changeJob(warehouse, job, {
        event: { kind: 'accepted', status: remote.status },
        ...{ now, remote, cause: `created as ${remote.id}`, nextPollAt: addMilliseconds(now, pollDelayMs) },
      }),
    failed: (outcome, words, now) =>
      changeJob(warehouse, job, { event: { kind: outcome }, now, cause: words, note: words }),
  };
}
