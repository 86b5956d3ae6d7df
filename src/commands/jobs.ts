import type { JobEffect } from '../agents/job-effects.js';
import { promptLimit } from '../agents/submit.js';
import { withState } from '../app/state.js';
import { readWorkspace, type Workspace } from '../app/workspace.js';
import type { ExitCode } from '../errors.js';
import { exists } from '../files.js';
import { nextMinute } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { describeJob, jobLines, unsettledPromptLines } from '../print/jobs.js';
import { readUnsettled } from '../service/status.js';
import { type Job, readChanges, readJobsOf } from '../state/jobs.js';
import { readMessagesOf } from '../state/messages.js';
import { findJob } from '../steps/job-messages.js';
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

const list = projectCommand('list', {
  isDefault: true,
  description: 'List the jobs.',
  options: JSON_OUTPUT,
  examples: `
  readership jobs list
  readership jobs list --json`,
  run: async (options, runtime) => {
    const workspace = await readWorkspace(options, runtime, 'optional');
    return withState(workspace, async (state): Promise<ExitCode> => {
      const { projects } = workspace;
      const { output, now } = runtime;
      const jobs = readJobsOf(state, projects);
      const messages = readMessagesOf(state, projects);
      if (options.json === true) output.json(jobs);
      else if (jobs.length === 0) output.data(`No jobs yet. Which pages would get one: readership improve`);
      else output.data((await jobLines(jobs, output.width)).join('\n'));
      for (const line of unsettledPromptLines(readUnsettled(state, projects, runtime.now())))
        output.note(line);
      for (const { id, name } of projects) {
        const planned = [...jobs, ...messages].filter((prompt) => prompt.state === 'planned');
        const waiting = planned.filter(({ project }) => project === id).length;
        const limit = waiting === 0 ? undefined : promptLimit(state, id, now());
        if (limit !== undefined)
          output.note(
            `${name}: ${counted(waiting, 'prompt')} planned: ${limit.why}; the next can be sent from ${nextMinute(limit.until)}`,
          );
      }
      return 0;
    });
  },
});

const show = workspaceCommand('show', {
  description: 'Show a job with its reason, evidence, messages, history and prompt.',
  arguments: [value('<id>', 'number of the job', aJob)],
  options: JSON_OUTPUT,
  examples: `
  readership jobs show 3`,
  run: async (options, runtime, id) => {
    const workspace = await readWorkspace(options, runtime, 'optional');
    return withState(workspace, async (state): Promise<ExitCode> => {
      const { job, messages } = findJob(state, workspace, id);
      const changes = readChanges(state, id);
      const effect = job.merged_on === null ? undefined : await readEffect(workspace, job);
      if (options.json === true) runtime.output.json({ ...job, messages, changes, effect });
      else runtime.output.words(describeJob({ job, messages, changes, effect }));
      return 0;
    });
  },
});

/** The views before and after the merge of a job, as of the last load. Only for them is DuckDB loaded. */
async function readEffect(workspace: Workspace, job: Job): Promise<JobEffect | undefined> {
  if (!(await exists(workspace.historyFile))) return undefined;
  const { withHistory } = await import('../app/state.js');
  const { readJobEffects } = await import('../agents/job-effects.js');
  const effects = await withHistory(workspace, ({ history }) => readJobEffects(history, job.project));
  return effects.find((effect) => effect.job === job.id);
}

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
  run: async (options, runtime) => (await import('./jobs-send.js')).pollAll(options, runtime),
});

export const jobs = simpleCommand('jobs', {
  summary: 'list, poll, message and settle the agent jobs',
  description: `Lists the agent jobs, polls them, sends them messages, and records their outcomes. A planned job can be called off: jobs settle ID --ended. One that was sent cannot be stopped; close its pull request instead. To pause new jobs, set improve.mode: plan.`,
  subcommands: [list, show, poll, message, settle],
  examples: `
  readership jobs list
  readership jobs show 3
  readership jobs poll --watch
  readership jobs message 3 "Mention the rate limits as well."
  readership jobs settle 3 --merged 2026-11-12
  readership jobs settle 4 --not-sent         after checking the platform`,
});
