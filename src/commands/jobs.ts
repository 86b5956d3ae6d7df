import { setTimeout as delay } from 'node:timers/promises';
import { readJobEffects } from '../agents/job-effects.js';
import { type Job, readJobs, readJobsOf } from '../agents/job.js';
import { type JobMessage, readMessages, readMessagesOf, readTransitions } from '../agents/messages.js';
import { nextTurn } from '../agents/submit.js';
import { withHistory } from '../app/history.js';
import { nextMinute } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { describeJob, jobLines, unconfirmedLines } from '../print/jobs.js';
import { findJob } from '../steps/job-changes.js';
import { pollStep } from '../steps/poll.js';
import {
  aDuration,
  aJob,
  flag,
  JSON_LOG,
  JSON_OUTPUT,
  PLATFORM_ENVIRONMENT,
  projectCommand,
  simpleCommand,
  value,
  workspaceCommand,
} from './command.js';
import { message, settle } from './jobs-change.js';
import { conclude, runSteps } from './steps.js';

const list = projectCommand('list', {
  isDefault: true,
  description: 'List the jobs, from the published history.',
  options: JSON_OUTPUT,
  examples: `
  readership jobs list
  readership jobs list --json`,
  run: (options, runtime) =>
    withHistory(options, runtime, async (history, { projects }) => {
      const { output, now } = runtime;
      const jobs = await readJobsOf(history, projects);
      const messages = await readMessagesOf(history, projects);
      if (options.json === true) output.json(jobs);
      else if (jobs.length === 0) output.data(`No jobs yet. Which pages would get one: readership improve`);
      else output.data((await jobLines(jobs, output.width)).join('\n'));
      const isUnconfirmed = ({ state }: Pick<Job | JobMessage, 'state'>) => state === 'unconfirmed';
      const unconfirmed = [jobs.filter(isUnconfirmed), messages.filter(isUnconfirmed)] as const;
      for (const line of unconfirmedLines(...unconfirmed)) output.note(line);
      for (const { id, name } of projects) {
        const planned = [...jobs, ...messages].filter(({ state }) => state === 'planned');
        const waiting = planned.filter(({ project }) => project === id).length;
        const turn = waiting === 0 ? undefined : await nextTurn(history, id, now());
        if (turn !== undefined)
          output.note(
            `${name}: ${counted(waiting, 'prompt')} planned: ${turn.why}; the next can be sent from ${nextMinute(turn.at)}`,
          );
      }
      return 0;
    }),
});

const show = workspaceCommand('show', {
  description: 'Show a job with its reason, evidence, messages, history and prompt.',
  arguments: [value('<id>', 'number of the job', aJob)],
  options: JSON_OUTPUT,
  examples: `
  readership jobs show 3`,
  run: (options, runtime, id) =>
    withHistory(options, runtime, async (history, workspace) => {
      const { job } = findJob(await readJobs(history, null), workspace, id);
      const messages = await readMessages(history, job.project);
      const effects = await readJobEffects(history, job.project);
      const rest = {
        messages: messages.filter((message) => message.job === id),
        transitions: await readTransitions(history, id),
        effect: effects.find((effect) => effect.job === id),
      };
      if (options.json === true) runtime.output.json({ ...job, ...rest });
      else runtime.output.words(describeJob({ job, ...rest }));
      return 0;
    }),
});

const poll = projectCommand('poll', {
  description:
    'Send the waiting prompts (planned jobs only if improve.mode is apply), and poll the active jobs that are due.',
  options: {
    wait: value(
      '<time>',
      'keep polling while jobs are active, such as 30s or 10m, and then stop, even if some are still active (default: poll once)',
      { ...aDuration, conflicts: ['watch'] },
    ),
    watch: flag('keep polling, with a live view, until every job has ended'),
    json: flag(JSON_LOG),
  },
  examples: `
  readership jobs poll --wait 10m
  readership jobs poll --watch`,
  environment: PLATFORM_ENVIRONMENT,
  run: async ({ wait = 0, watch, ...options }, runtime) => {
    const { output, signal } = runtime;
    // Neither a wrong clock nor one that is set in the meantime changes how long this takes.
    const deadlineMs = watch === true ? Infinity : performance.now() + wait;
    const ended: Job[] = [];
    // Each round releases the database, so that watching does not block other commands.
    for (;;) {
      const { result, outages } = await runSteps('jobs poll', options, runtime, (runner, parts) =>
        runner.step('poll', () => pollStep(parts, wait === 0 ? {} : { deadlineMs })),
      );
      const { stillActive = [], pollsInMs } = result ?? {};
      ended.push(...(result?.ended ?? []));
      // A job that was due when the time was up is still due.
      const nextMs = performance.now() + Math.max(0, pollsInMs ?? Infinity);
      const isOver = nextMs === Infinity || nextMs > deadlineMs;
      const isHopeless = outages.some(({ outcome }) => outcome !== 'later');
      if (!isOver && !isHopeless) {
        const next = `polling again in ${Math.ceil((pollsInMs ?? 0) / 1000)} s`;
        output.live([...(await jobLines(stillActive, output.noteWidth)), next].join('\n'));
        const isTime = await delay(nextMs - performance.now(), true, { signal }).catch(() => false);
        output.clearLive();
        if (isTime) continue;
      }
      const jobs = [...ended, ...stillActive];
      output.data(jobs.length === 0 ? 'No active jobs.' : (await jobLines(jobs, output.width)).join('\n'));
      return signal.aborted ? 0 : conclude(outages, runtime);
    }
  },
});

export const jobs = simpleCommand('jobs', {
  summary: 'list, poll, message and settle the agent jobs',
  description: 'Lists the agent jobs, polls them, sends them messages, and records what became of them.',
  subcommands: [list, show, poll, message, settle],
  examples: `
  readership jobs list
  readership jobs show 3
  readership jobs poll --watch
  readership jobs message 3 "Mention the rate limits as well."
  readership jobs settle 3 --merged 2026-11-12
  readership jobs settle 4 --not-sent         after checking the platform`,
});
