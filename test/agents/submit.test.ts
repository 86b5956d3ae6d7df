import { addHours, addMinutes } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { promptLimit, PromptLimitError, submitPrompts } from '../../src/agents/submit.js';
import { recordPromptPause } from '../../src/state/messages.js';
import { agentDesk, type AgentDesk } from './agent-desk.js';
import { changeJob } from '../../src/agents/jobs.js';
import { pollStep } from '../../src/steps/poll.js';

const MINUTE = 60;

it('no more than 100 jobs, messages and failed attempts are sent in any rolling hour, also across restarts', async () => {
  const desk = await agentDesk();
  await desk.plan(102);
  desk.sandbox.setFaults([{ on: 'create', kind: 'status', status: 401, times: 1 }]);
  await submitPrompts(desk.task(), 'job');
  desk.clock.advance(10 * MINUTE);
  expect(await submitPrompts(desk.task(), 'job')).toMatchObject({
    sent: 99,
    stopped: expect.any(PromptLimitError) as unknown,
  });
  await desk.restart();
  await desk.planMessage(1, 'Go on');
  const { stopped } = await submitPrompts(desk.task(), 'message');
  expect((stopped as Error).message).toMatch(
    /^1 prompt not sent yet: the limit of 100 prompts an hour has been reached\. The next can be sent from Nov 18, 2026 at 06:01 UTC\. Send them then with readership jobs poll, or let the schedule do it\.$/,
  );
  expect(promptLimit(desk.state, 'prj_other', desk.clock.now())).toBeUndefined();
  // The failed attempt of the first minute counts no longer.
  desk.clock.advance(52 * MINUTE);
  expect(await submitPrompts(desk.task(), 'message')).toEqual({ sent: 1 });
  expect(await submitPrompts(desk.task(), 'job')).toMatchObject({ sent: 0 });
  desk.clock.advance(10 * MINUTE);
  expect(await submitPrompts(desk.task(), 'job')).toEqual({ sent: 3 });
  expect(desk.sandbox.inspect().requests.counts.create).toEqual({ '201': 102, '401': 1 });
});

it('a pause lasts as long as the platform asked, whatever a clock that was ahead stored', async () => {
  const desk = await agentDesk();
  const now = desk.clock.now();
  const turnAfter = async (pausedInMinutes: number) => {
    const at = addMinutes(now, pausedInMinutes);
    const pause = { project: desk.project, now: at, until: addMinutes(at, 60), cause: 'a test' };
    await desk.state.transaction(() => recordPromptPause(desk.state, pause));
    return promptLimit(desk.state, desk.project, now)?.until;
  };
  expect(await turnAfter(400 * 24 * 60)).toBeUndefined();
  expect(await turnAfter(3 * 60)).toBeUndefined();
  expect(await turnAfter(-10)).toEqual(addMinutes(now, 50));
  expect(await turnAfter(30)).toEqual(addMinutes(now, 60));
});

it('jobs that wait are said to be sent by the schedule only if improve.mode is apply', async () => {
  const desk = await agentDesk();
  await desk.plan(2);
  desk.sandbox.setFaults([{ on: 'create', kind: 'rate-limit', times: 1 }]);
  await submitPrompts(desk.task(), 'job');
  const { stopped } = await submitPrompts(desk.task(), 'job');
  expect((stopped as Error).message).toMatch(
    /^2 prompts not sent yet: .+ Send them then with readership improve --apply, or let the schedule do it if improve.mode is apply\.$/,
  );
});

/** A client that answers each creation after `meanwhile` has been done. */
const clientAfter = (meanwhile: () => Promise<unknown>, created: string[] = []) => ({
  createJob: async (prompt: string) => {
    created.push(prompt);
    await meanwhile();
    return { id: `job_${created.length}`, status: 'active' };
  },
  sendMessage: () => expect.fail('no message is sent'),
});

const changeBy = (desk: AgentDesk, event: 'unknown' | 'found-not-sent' | 'withdrawn') =>
  desk.state.transaction(() =>
    changeJob(desk.state, desk.job(1), { event, now: desk.clock.now(), cause: 'meanwhile' }),
  );

describe('a reply that comes after the job was taken for lost', () => {
  it.each([
    ['by another worker', ['unknown']],
    ['by a person who plans it again', ['unknown', 'found-not-sent']],
    ['by a person who ends it', ['unknown', 'withdrawn']],
  ] as const)('%s is stored, so the job is polled and not created again', async (_, events) => {
    const desk = await agentDesk();
    await desk.plan(1);
    const created: string[] = [];
    const meanwhile = async () => {
      for (const event of events) await changeBy(desk, event);
    };
    await submitPrompts({ ...desk.task(), client: clientAfter(meanwhile, created) }, 'job');
    expect(desk.job(1)).toMatchObject({ state: 'active', remote_id: 'job_1' });
    expect(await submitPrompts(desk.task(), 'job')).toEqual({ sent: 0 });
    expect(created).toHaveLength(1);
  });

  it.each([
    ['the job is being sent again', { event: 'submit', cause: 'again', attempt: 99 }, null],
    ['a person has found it', { event: 'found-sent', cause: 'found', remote: { id: 'job_9' } }, 'job_9'],
  ] as const)('changes nothing if %s meanwhile', async (_, change, remoteId) => {
    const desk = await agentDesk();
    await desk.plan(1);
    const meanwhile = async () => {
      await changeBy(desk, 'unknown');
      if (change.event === 'submit') await changeBy(desk, 'found-not-sent');
      const now = desk.clock.now();
      await desk.state.transaction(() => changeJob(desk.state, desk.job(1), { ...change, now }));
    };
    const { stopped } = await submitPrompts({ ...desk.task(), client: clientAfter(meanwhile) }, 'job');
    expect(stopped).toBeUndefined();
    const state = remoteId === null ? 'sending' : 'active';
    expect(desk.job(1)).toMatchObject({ state, remote_id: remoteId });
  });
});

it.each([
  [
    'a pause',
    ({ state, project, clock }: AgentDesk) => {
      const now = clock.now();
      const pause = { project, now, until: addHours(now, 1), cause: 'a limit' };
      return state.transaction(() => recordPromptPause(state, pause));
    },
  ],
  [
    'the last job of the week',
    (desk: AgentDesk) => desk.change("UPDATE jobs SET state = 'unknown' WHERE id = 2"),
  ],
])('%s that was stored just before a job would be sent keeps it from being sent', async (_, store) => {
  const desk = await agentDesk();
  await desk.plan(2);
  const begin = desk.sender.begin.bind(desk.sender);
  desk.sender.begin = async (...given) => {
    await store(desk);
    return begin(...given);
  };
  const rules = { ...desk.task().rules, maxJobsPerWeek: 1 };
  expect(await submitPrompts({ ...desk.task(), rules }, 'job')).toEqual({ sent: 0 });
  expect(desk.job(1)).toMatchObject({ state: 'planned', attempt: null });
  expect(desk.sandbox.inspect().jobs).toEqual([]);
});

it('of planned jobs, a poll sends those that a person approved in every mode, and others only in mode apply', async () => {
  const desk = await agentDesk();
  await desk.plan(1);
  await desk.planJob('/approved', { is_approved: true });
  const states = () => desk.jobs().map(({ state }) => state);
  await pollStep(desk.parts(), {});
  expect(states()).toEqual(['planned', 'active']);
  await pollStep(desk.parts({ settings: { improve: { mode: 'apply' } } }), {});
  expect(states()).toEqual(['active', 'active']);
});
