import { type Job, readJobs } from '../agents/ledger.js';
import type { Runtime } from '../app/workspace.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode, messageOf } from '../errors.js';
import { longDay } from '../format/days.js';
import { jobLine } from '../print/jobs.js';
import {
  FINDINGS,
  findJob,
  type JobToChange,
  jobToChange,
  recordReview,
  sendMessage,
  settleJob,
  undoMerge,
} from '../steps/job-changes.js';
import { aDay, aJob, workspaceCommand, flag, PLATFORM_ENVIRONMENT, value } from './command.js';
import { makeChange } from './steps.js';

const JOB = value('<id>', 'number of the job', aJob);
const DAY = value<Day | undefined>('[day]', 'the day, YYYY-MM-DD (default: today, UTC)', aDay);

export const message = workspaceCommand('message', {
  description:
    'Send a follow-up message to a job, which reopens it. It is recorded before it is sent, and never sent twice automatically.',
  arguments: [JOB, value('<text>', 'what the agent should do now')],
  examples: `
  readership jobs message 3 "Mention the rate limits as well."`,
  environment: PLATFORM_ENVIRONMENT,
  run: (options, runtime, id, text) =>
    changeJob('jobs message', id, options, runtime, async (found) => {
      const { state, stopped } = await sendMessage(found, text);
      const resolve = `readership jobs resolve ${id}`;
      const { output } = runtime;
      if (state === 'unconfirmed')
        output.note(`If the message arrived: ${resolve} --sent; if not: --not-sent`);
      if (state === 'planned') output.note(`The next run sends it. To prevent that: ${resolve} --withdrawn`);
      if (stopped !== undefined) throw stopped instanceof Error ? stopped : new Error(messageOf(stopped));
      output.note(`The message was sent to job ${id}.`);
    }),
});

export const merged = workspaceCommand('merged', {
  description:
    'Record when the pull request of a job was merged, or the day on which the platform committed the work of a completed job without one, so that its effect is measured from then on. With pullRequests in readership.yaml, the date is looked up on GitHub, GitLab or Bitbucket instead.',
  arguments: [JOB, DAY],
  options: { undo: flag('forget the recorded merge, which was a mistake') },
  examples: `
  readership jobs merged 3 2026-11-12
  readership jobs merged 3 --undo`,
  run: ({ undo, ...options }, runtime, id, day) =>
    changeJob('jobs merged', id, { ...options, secrets: 'optional' }, runtime, async (found) => {
      if (undo === true) {
        if (day !== undefined) throw new ConfigurationError('With --undo, leave out the day.');
        await undoMerge(found);
        return;
      }
      const mergedOn = await recordReview(found, 'merged', day);
      runtime.output.note(`Merged on ${longDay(mergedOn)}: its effect is measured from then.`);
    }),
});

export const closed = workspaceCommand('closed', {
  description:
    'Record that the pull request of a job was closed without being merged. Its page gets no other job unless you propose it again: readership improve --apply /page. With pullRequests in readership.yaml, it is looked up instead.',
  arguments: [JOB, DAY],
  examples: `
  readership jobs closed 3`,
  run: (options, runtime, id, day) =>
    changeJob('jobs closed', id, { ...options, secrets: 'optional' }, runtime, async (found) => {
      const closedOn = await recordReview(found, 'closed', day);
      runtime.output.note(`Closed on ${longDay(closedOn)}: its page gets a job only if you propose it.`);
    }),
});

export const resolve = workspaceCommand('resolve', {
  description:
    'Settle an unconfirmed job or message, after checking the platform; end an active job that is gone or over; or withdraw what was not sent yet.',
  arguments: [JOB],
  options: {
    created: value('<remote-id>', 'the job exists on the platform under this id: poll it'),
    notCreated: flag('the job does not exist there: plan it again'),
    sent: flag('the message arrived there: poll the job'),
    notSent: flag('the message did not arrive: plan it again'),
    gone: flag('the platform no longer has the active job: end it'),
    ended: flag(
      'the active job is over, whatever the platform says: end it, as failed without a pull request',
    ),
    withdrawn: flag('the planned job, or the planned message to a job, is not wanted: never send it'),
  },
  examples: `
  readership jobs resolve 3 --created job_81
  readership jobs resolve 3 --not-created
  readership jobs resolve 3 --sent
  readership jobs resolve 3 --gone
  readership jobs resolve 3 --withdrawn`,
  environment: PLATFORM_ENVIRONMENT,
  run: ({ created, ...options }, runtime, id) => {
    const others = FINDINGS.filter((name) => options[name] === true);
    const [finding, ...more] = [created === undefined ? [] : { created }, others].flat();
    if (finding === undefined || more.length > 0)
      throw new ConfigurationError(
        `Give one of --created REMOTE_ID, --not-created, --gone, --ended or --withdrawn for a job, --sent, --not-sent or --withdrawn for its message. To find out which: readership jobs show ${id}`,
      );
    return changeJob('jobs resolve', id, options, runtime, (found) => settleJob(found, finding));
  },
});

/** Finds the job, does the work, and shows the updated job. */
const changeJob = (
  command: string,
  id: number,
  options: Parameters<typeof makeChange>[1],
  runtime: Runtime,
  work: (found: JobToChange) => Promise<void>,
): Promise<ExitCode> =>
  makeChange(command, options, runtime, async (context) => {
    // This job is shown only once, at the end.
    const onJob = (job: Job) => {
      if (job.id !== id) context.observer.onJob?.(job);
    };
    await work(await jobToChange({ ...context, observer: { ...context.observer, onJob } }, id));
    const { job } = findJob(await readJobs(context.warehouse, null), context, id);
    runtime.output.data(jobLine(job));
  });
