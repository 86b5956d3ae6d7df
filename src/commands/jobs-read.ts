import { addMilliseconds, compareAsc } from 'date-fns';
import { setTimeout as delay } from 'node:timers/promises';
import { readEffects } from '../agents/effect.js';
import { type Job, readJobsOf, readTransitions } from '../agents/ledger.js';
import { readMessages, readMessagesOf } from '../agents/messages.js';
import { nextTurn } from '../agents/submit.js';
import { withHistory } from '../app/open.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import type { ExitCode } from '../errors.js';
import { moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { describeJob, howToLook, jobLines, resolveJobCommand, resolveMessageCommand } from '../print/jobs.js';
import { pollStep } from '../steps/poll.js';
import { findJob } from '../steps/settle.js';
import { conclude, runSteps } from './steps.js';

export type JsonOption = WorkspaceOptions & { readonly json?: boolean };

export const listJobs = (options: JsonOption, runtime: Runtime): Promise<ExitCode> =>
  withHistory<ExitCode>(options, runtime, async (history, { projects }) => {
    const { output, now } = runtime;
    const jobs = await readJobsOf(history, projects);
    if (options.json === true) output.json(jobs);
    else if (jobs.length === 0) output.data('No jobs yet. Which pages would get one: readership improve');
    else output.data(jobLines(jobs, output.width).join('\n'));

    for (const job of jobs.filter(({ state }) => state === 'unconfirmed'))
      output.note(
        `Job ${job.id} is unconfirmed: the reply was lost, so it may exist on the platform. ${howToLook(job)} Then: ${resolveJobCommand(job.id)}`,
      );
    const messages = await readMessagesOf(history, projects);
    for (const { id, job } of messages.filter(({ state }) => state === 'unconfirmed'))
      output.note(
        `Message ${id} to job ${job} is unconfirmed: the reply was lost, so the agent may have received it. Check the platform, then: ${resolveMessageCommand(job)}`,
      );
    const planned = [...jobs, ...messages].filter(({ state }) => state === 'planned').length;
    for (const { id } of planned === 0 ? [] : projects) {
      const turn = await nextTurn(history, id, now());
      if (turn !== undefined)
        output.note(
          `${counted(planned, 'prompt')} planned: ${turn.why}; the next can be sent from ${moment(turn.at)}`,
        );
    }
    return 0;
  });

export const showJob = (id: number, options: JsonOption, runtime: Runtime): Promise<ExitCode> =>
  withHistory<ExitCode>(options, runtime, async (history, { projects }) => {
    const job = findJob(await readJobsOf(history, projects), id);
    const messages = await readMessages(history, job.project);
    const effects = await readEffects(history, job.project);
    const rest = {
      messages: messages.filter((message) => message.job === id),
      transitions: await readTransitions(history, id),
      effect: effects.find((effect) => effect.job === id),
    };
    if (options.json === true) runtime.output.json({ ...job, ...rest });
    else runtime.output.words(describeJob({ job, ...rest }));
    return 0;
  });

export type PollOptions = JsonOption & { readonly wait: number; readonly watch?: boolean };

/** Releases the database between rounds, so that watching does not block other commands. */
export async function pollNow(options: PollOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, now, signal } = runtime;
  const deadline = options.watch === true ? undefined : addMilliseconds(now(), options.wait);
  const ended: Job[] = [];
  for (;;) {
    const { result, outages } = await runSteps('jobs poll', options, runtime, (runner, context) =>
      runner.step('poll', () => pollStep(context, { waitMs: 0 })),
    );
    const { stillActive = [] } = result ?? {};
    ended.push(...(result?.ended ?? []));
    const next = stillActive.flatMap(({ next_poll_at }) => next_poll_at ?? []).sort(compareAsc)[0];
    const isOver = next === undefined || (deadline !== undefined && next > deadline);
    const isHopeless = outages.some(({ outcome }) => outcome !== 'later');
    if (!isOver && !isHopeless && (await watched(stillActive, next, runtime))) continue;

    const jobs = [...ended, ...stillActive];
    output.data(jobs.length === 0 ? 'No active jobs.' : jobLines(jobs, output.width).join('\n'));
    return signal.aborted ? 0 : conclude(outages, runtime);
  }
}

/** Shows the active jobs until `next`. False when interrupted. */
async function watched(
  active: readonly Job[],
  next: Date,
  { output, now, signal }: Runtime,
): Promise<boolean> {
  for (;;) {
    const leftMs = next.getTime() - now().getTime();
    if (signal.aborted || leftMs <= 0) break;
    const asked = `polling again in ${Math.ceil(leftMs / 1000)} s`;
    output.live([...jobLines(active, output.noteWidth), asked].join('\n'));
    await delay(Math.min(leftMs, 1000), undefined, { signal }).catch(() => undefined);
  }
  output.clearLive();
  return !signal.aborted;
}
