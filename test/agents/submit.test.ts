import { addMinutes } from 'date-fns';
import { expect, it } from 'vitest';
import { promptLimit, PromptLimitError, submitPrompts } from '../../src/agents/submit.js';
import { recordPromptPause } from '../../src/state/messages.js';
import { agentDesk } from './agent-desk.js';

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
