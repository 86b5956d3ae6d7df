import { addHours } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { changeJob } from '../../src/agents/jobs.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { recordPromptPause } from '../../src/state/messages.js';
import { pollStep } from '../../src/steps/poll.js';
import { type AgentDesk, agentDesk } from './agent-desk.js';

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

it('a pause that was stored just before a job would be sent keeps it from being sent', async () => {
  const desk = await agentDesk();
  await desk.plan(1);
  const begin = desk.sender.begin.bind(desk.sender);
  desk.sender.begin = async (...given) => {
    const now = desk.clock.now();
    const pause = { project: desk.project, now, until: addHours(now, 1), cause: 'a limit' };
    await desk.state.transaction(() => recordPromptPause(desk.state, pause));
    return begin(...given);
  };
  expect(await submitPrompts(desk.task(), 'job')).toEqual({ sent: 0 });
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
