import fc from 'fast-check';
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { planJob, planMessage } from '../../src/agents/jobs.js';
import { isRemote, OPEN_MESSAGE_STATES } from '../../src/agents/lifecycle.js';
import { pollJobs } from '../../src/agents/poll.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { Transport } from '../../src/api/transport.js';
import { type JobState, readJobs } from '../../src/state/jobs.js';
import { type MessageState, readMessages } from '../../src/state/messages.js';
import { recover } from '../../src/state/sender.js';
import { settingsSchema } from '../../src/config/schema.js';
import { type JobFinding, settleJob } from '../../src/steps/settle-job.js';
import { openClient } from '../api/open-client.js';
import { tries } from '../fuzz.js';
import { openTestState } from '../open-state.js';
import { clockAt, NOW } from '../sandbox/open-sandbox.js';
import { reply, type SeenRequest, serve } from '../serve.js';
import { jobFor, RULES } from './reading.js';

/** What a platform does with a POST, and what the sender learns. */
const FATES = [
  ...(['taken', 'taken-lost', 'taken-500', 'taken-garbled', 'lost', 'crash'] as const),
  ...(['500', '400', '401', '429', '503'] as const),
];
type Fate = (typeof FATES)[number];

type Step =
  | { readonly kind: 'plan' | 'settle' | 'poll' | 'poll-in-vain' | 'restart' }
  | { readonly kind: 'submit' | 'send'; readonly fates: readonly Fate[] }
  | { readonly kind: 'message'; readonly job: number; readonly fates: readonly Fate[] }
  | { readonly kind: 'work'; readonly job: number; readonly status: string }
  | { readonly kind: 'delete'; readonly job: number }
  | { readonly kind: 'wait'; readonly minutes: number };

const fates = fc.array(fc.constantFrom('taken' as const, ...FATES), { minLength: 3, maxLength: 3 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('plan', 'settle', 'poll', 'poll-in-vain', 'restart') }),
  fc.record({ kind: fc.constantFrom('submit', 'send'), fates }),
  fc.record({ kind: fc.constant('message'), job: fc.nat(2), fates }),
  fc.record({
    kind: fc.constant('work'),
    job: fc.nat(2),
    status: fc.constantFrom('completed', 'failed', 'thinking'),
  }),
  fc.record({ kind: fc.constant('delete'), job: fc.nat(2) }),
  fc.record({ kind: fc.constant('wait'), minutes: fc.integer({ min: 1, max: 30 }) }),
);

/** The state of a prompt after its POST, from a separate table. */
const AFTER: Readonly<Record<Fate, 'taken' | 'unknown' | 'refused' | 'planned'>> = {
  ...{
    taken: 'taken',
    'taken-lost': 'unknown',
    'taken-500': 'unknown',
    'taken-garbled': 'unknown',
  },
  ...{ lost: 'unknown', '500': 'unknown', crash: 'unknown' },
  ...{ '400': 'refused', '401': 'planned', '429': 'planned', '503': 'planned' },
};
const PAUSE_MINUTES = 10;

/** A platform that follows a script, and records what it really received. */
class ScriptedPlatform {
  readonly jobs: { readonly id: string; readonly prompt: string; status: string }[] = [];
  readonly messages: string[] = [];
  /** Ids of the jobs that it no longer has; a message that it accepts nevertheless restores one. */
  readonly deleted = new Set<string>();
  isDown = false;
  /** The prompts of the POSTs and the ids of the jobs that were requested, in order. */
  readonly posts: string[] = [];
  readonly asked: string[] = [];
  fates: Fate[] = [];
  onCrash: () => void = () => undefined;

  handle({ method, url, body }: SeenRequest, response: ServerResponse): void {
    const [, id, end] = /\/job\/([^/]+)(\/message)?$/.exec(url.pathname) ?? [];
    if (method === 'GET') {
      this.asked.push(id ?? '');
      const job = this.known().find((candidate) => candidate.id === id);
      if (this.isDown) reply(response, 503, { error: 'down' });
      else reply(response, job === undefined ? 404 : 200, job ?? { error: 'no such job' });
      return;
    }
    const { prompt } = JSON.parse(body) as { prompt: string };
    this.posts.push(prompt);
    const fate = this.fates.shift() ?? 'taken';
    const isTaken = fate.startsWith('taken') || (fate === 'crash' && this.posts.length % 2 === 0);
    const job = this.#take(isTaken, prompt, end === undefined ? undefined : id);
    if (fate === 'taken') reply(response, 200, job);
    else if (fate === 'taken-garbled') response.end('<html>');
    else if (fate === 'taken-500') reply(response, 500, { error: 'late' });
    else if (fate === 'crash') this.onCrash();
    else if (/^\d/.test(fate)) {
      const headers = fate === '429' || fate === '503' ? { 'retry-after': String(PAUSE_MINUTES * 60) } : {};
      reply(response, Number(fate), { error: 'no' }, headers);
    } else response.destroy();
  }

  known() {
    return this.jobs.filter(({ id }) => !this.deleted.has(id));
  }

  #take(isTaken: boolean, prompt: string, id: string | undefined) {
    const job = this.jobs.find((candidate) => candidate.id === id) ?? {
      ...{ id: `job_${this.jobs.length + 1}`, prompt, status: 'active' },
    };
    if (!isTaken) return job;
    if (id === undefined) this.jobs.push(job);
    else this.messages.push(prompt);
    this.deleted.delete(job.id);
    // A follow-up reopens the job.
    job.status = 'active';
    return job;
  }
}

/** What should be stored: states by prompt. */
interface Model {
  readonly jobs: Map<string, JobState>;
  readonly messages: Map<string, { readonly job: string; state: MessageState }>;
  pausedUntil: Date;
}

async function live(steps: readonly Step[]): Promise<void> {
  const clock = clockAt(NOW);
  const platform = new ScriptedPlatform();
  const server = await serve((request, response) => {
    platform.handle(request, response);
  });
  const project = 'prj_1';
  const transport = new Transport();
  const newClient = () =>
    openClient(server.baseUrl, {
      now: clock.now,
      retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 },
      transport,
    });
  let opened = await openTestState(undefined, { now: clock.now });
  let client = newClient();
  const model: Model = { jobs: new Map(), messages: new Map(), pausedUntil: new Date(0) };
  const task = () => ({
    state: opened.state,
    sender: opened.sender,
    client,
    rules: { ...RULES, maxJobsPerWeek: 100, maxOpenPullRequests: 100 },
    sendsAll: true,
    project,
    now: clock.now,
  });

  const restart = async () => {
    await opened.close();
    opened = await openTestState(opened.dataDir, { now: clock.now });
    client = newClient();
    await recover(opened.state, opened.worker, clock.now());
  };

  /** Sends what is planned; after a crash in the middle, the sending process records nothing more. */
  const sending = async (kind: 'job' | 'message', fates: readonly Fate[]) => {
    platform.fates = [...fates];
    const crashed = new Promise<'crashed'>((resolve) => {
      platform.onCrash = () => {
        resolve('crashed');
      };
    });
    const ended = submitPrompts(task(), kind);
    ended.catch(() => undefined);
    if ((await Promise.race([ended, crashed])) === 'crashed') await restart();
  };

  const postsExpected = (
    planned: readonly string[],
    fates: readonly Fate[],
  ): [prompt: string, fate: Fate][] => {
    if (clock.now() < model.pausedUntil) return [];
    const stop = fates.slice(0, planned.length).findIndex((fate) => fate !== 'taken');
    const count = stop === -1 ? planned.length : stop + 1;
    return planned.slice(0, count).map((prompt, index) => [prompt, fates[index] ?? 'taken']);
  };

  /** Sends those that are planned, and returns which should have been sent, with their fates. */
  const submitPlanned = async (
    kind: 'job' | 'message',
    states: readonly (readonly [prompt: string, state: string])[],
    fates: readonly Fate[],
  ) => {
    const planned = states.flatMap(([prompt, state]) => (state === 'planned' ? prompt : []));
    const expected = postsExpected(planned, fates);
    const before = platform.posts.length;
    await sending(kind, fates);
    expect(platform.posts.slice(before)).toEqual(expected.map(([prompt]) => prompt));
    if (expected.some(([, fate]) => fate === '429' || fate === '503'))
      model.pausedUntil = new Date(clock.now().getTime() + PAUSE_MINUTES * 60_000);
    return expected;
  };
  const messageStates = () => Array.from(model.messages, ([prompt, { state }]) => [prompt, state] as const);

  /** As `jobs settle` does. */
  const settle = async (prompt: string, finding: JobFinding) => {
    const { state } = opened;
    const jobs = readJobs(state, project);
    const job = jobs.find((candidate) => candidate.prompt === prompt) ?? expect.fail(`no job for ${prompt}`);
    const workspace = {
      projects: settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: project }] }).projects,
    };
    const lookUp = (_: unknown, id: string) => client.job(id);
    await settleJob({ state, workspace, now: clock.now, lookUp }, job.id, finding);
  };
  /** Whether a job has no message that would be settled in its place. */
  const isQuiet = (prompt: string) =>
    [...model.messages.values()].every(({ job, state }) => job !== prompt || !OPEN_MESSAGE_STATES.has(state));

  const perform = async (now: Step): Promise<void> => {
    const jobs = readJobs(opened.state, project);
    switch (now.kind) {
      case 'plan': {
        if (model.jobs.size === 3) return;
        const prompt = `Improve /page-${model.jobs.size}`;
        const job = jobFor(`/page-${model.jobs.size}`, clock.now(), { project });
        await opened.state.transaction(() => planJob(opened.state, job));
        model.jobs.set(prompt, 'planned');
        return;
      }
      case 'submit': {
        for (const [prompt, fate] of await submitPlanned('job', [...model.jobs], now.fates))
          model.jobs.set(prompt, AFTER[fate] === 'taken' ? 'active' : AFTER[fate]);
        return;
      }
      case 'message': {
        const job = jobs[now.job];
        if (job === undefined || !isRemote(job.state)) return;
        const ofJob = Array.from(model.messages.values()).filter((message) => message.job === job.prompt);
        if (ofJob.some(({ state }) => OPEN_MESSAGE_STATES.has(state))) return;
        const prompt = `Message ${model.messages.size}`;
        const message = { origin: 'typed', prompt, now: clock.now() } as const;
        await opened.state.transaction(() => planMessage(opened.state, job, message));
        model.messages.set(prompt, { job: job.prompt, state: 'planned' });
        return perform({ kind: 'send', fates: now.fates });
      }
      case 'send': {
        for (const [prompt, fate] of await submitPlanned('message', messageStates(), now.fates)) {
          const message = model.messages.get(prompt) ?? expect.fail('unplanned');
          const after = AFTER[fate];
          message.state = after === 'taken' ? 'sent' : after;
          if (after === 'taken') model.jobs.set(message.job, 'active');
        }
        return;
      }
      case 'work': {
        const job = platform.jobs[now.job];
        if (job?.status === 'active') job.status = now.status;
        clock.advance(120);
        return perform({ kind: 'poll' });
      }
      case 'poll-in-vain':
        platform.isDown = true;
        await pollJobs(task());
        platform.isDown = false;
        return;
      case 'delete': {
        const job = platform.jobs[now.job];
        if (job !== undefined) platform.deleted.add(job.id);
        return;
      }
      case 'poll': {
        const before = platform.asked.length;
        await pollJobs(task());
        for (const id of platform.asked.slice(before)) {
          const { prompt, state } = jobs.find(({ remote_id }) => remote_id === id) ?? {};
          // None has a pull request.
          expect(state).toMatch(/^(active|completed)$/);
          const job = platform.known().find((candidate) => candidate.id === id);
          if (job === undefined) continue;
          const ended = (['completed', 'failed'] as const).find((status) => status === job.status);
          model.jobs.set(prompt ?? '', ended ?? 'active');
        }
        return;
      }
      case 'settle': {
        // Whoever settles it has looked at the platform, and reports it correctly.
        for (const [prompt, state] of model.jobs) {
          const remote = platform.jobs.find((candidate) => candidate.prompt === prompt);
          const isDeleted = remote !== undefined && platform.deleted.has(remote.id);
          if (state === 'active' && isDeleted && isQuiet(prompt)) {
            await settle(prompt, { as: 'ended' });
            model.jobs.set(prompt, 'failed');
          }
          if (state !== 'unknown') continue;
          if (isDeleted) await settle(prompt, { as: 'ended' });
          else
            await settle(
              prompt,
              remote === undefined ? { as: 'notSent' } : { as: 'sent', remoteId: remote.id },
            );
          model.jobs.set(prompt, isDeleted ? 'refused' : remote === undefined ? 'planned' : 'active');
        }
        for (const [prompt, message] of model.messages) {
          if (message.state !== 'unknown') continue;
          const hasArrived = platform.messages.includes(prompt);
          await settle(message.job, { as: hasArrived ? 'sent' : 'notSent' });
          message.state = hasArrived ? 'sent' : 'planned';
          if (hasArrived) model.jobs.set(message.job, 'active');
        }
        return;
      }
      case 'restart':
        return restart();
      case 'wait':
        clock.advance(now.minutes * 60);
    }
  };

  try {
    const beginning: Step[] = [{ kind: 'plan' }, { kind: 'submit', fates: ['taken'] }];
    for (const now of [...beginning, ...steps]) {
      await perform(now);
      const jobs = readJobs(opened.state, project);
      expect(new Map(jobs.map(({ prompt, state }) => [prompt, state]))).toEqual(model.jobs);
      const messages = readMessages(opened.state, project);
      expect(messages.map(({ prompt, state }) => [prompt, state])).toEqual(messageStates());
      // The main promise.
      expect(new Set(platform.jobs.map(({ prompt }) => prompt)).size).toBe(platform.jobs.length);
      expect(new Set(platform.messages).size).toBe(platform.messages.length);
    }
  } finally {
    await transport.close();
    await opened.close();
    await server.close();
  }
}

it('the life of jobs and messages, for any sequence of events matches the model, and the platform gets no prompt twice', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30, size: 'max' }), live);
  await fc.assert(property, tries(30));
});
