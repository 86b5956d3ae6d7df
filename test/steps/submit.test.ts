import { describe, expect, it } from 'vitest';
import { submitPrompts } from '../../src/agents/submit.js';
import { runOnce } from '../../src/service/run.js';
import { pollStep } from '../../src/steps/poll.js';
import { type AgentDesk, agentDesk } from '../agents/agent-desk.js';

const partsOfDesk = (desk: AgentDesk, improve = {}) =>
  desk.parts({ settings: { improve: { mode: 'apply', ...improve } } });

const run = (desk: AgentDesk, improve?: object) =>
  runOnce(partsOfDesk(desk, improve), { apply: true, due: new Set(['improve', 'poll']) });

const statesOf = (desk: AgentDesk) => desk.jobs().map(({ state }) => state);

describe('after a failed creation', () => {
  it.each([
    ['whose outcome is unknown', 'lost-reply', 'unknown', 1],
    ['that the platform rejected', 'status', 'refused', 0],
  ] as const)(
    '%s, the run creates nothing more; the next one does, but not that job',
    async (_, kind, state, created) => {
      const desk = await agentDesk();
      await desk.plan(3);
      const fault = kind === 'status' ? { kind, status: 422 } : { kind };
      desk.sandbox.setFaults([{ on: 'create', times: 1, ...fault }]);
      await run(desk);
      expect(desk.sandbox.inspect().jobs).toHaveLength(created);
      expect(statesOf(desk)).toEqual([state, 'planned', 'planned']);
      await desk.restart();
      await run(desk);
      expect(statesOf(desk)).toEqual([state, 'active', 'active']);
    },
  );

  it('during polling, no message is sent either', async () => {
    const desk = await agentDesk();
    await desk.plan(1);
    await submitPrompts(desk.task(), 'job');
    await desk.planMessage(1, 'Mention the version');
    await desk.plan(2, 2);
    desk.sandbox.setFaults([{ on: 'create', kind: 'lost-reply', times: 1 }]);
    await pollStep(partsOfDesk(desk), {});
    expect(desk.messages().map(({ state }) => state)).toEqual(['planned']);
    expect(statesOf(desk).filter((state) => state === 'unknown')).toHaveLength(1);
  });
});

it('of jobs planned earlier, a run sends no more than limits that were lowered since allow, in the week in which it sends', async () => {
  const desk = await agentDesk();
  await desk.plan(5);
  desk.clock.advance(7 * 86_400);
  const sentWith = async (improve: object) => {
    const { improved } = await run(desk, improve);
    const active = statesOf(desk).filter((state) => state === 'active');
    return [active.length, improved[0]?.plan.plannedThisWeek];
  };
  expect(await sentWith({ maxJobsPerWeek: 1 })).toEqual([1, 5]);
  expect(await sentWith({ maxJobsPerWeek: 2 })).toEqual([2, 5]);
  expect(await sentWith({ maxJobsPerWeek: 2 })).toEqual([2, 5]);
  expect(await sentWith({ maxOpenPullRequests: 3 })).toEqual([3, 5]);
  expect(await sentWith({})).toEqual([5, 5]);
});
