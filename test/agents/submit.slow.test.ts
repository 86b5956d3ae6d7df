import { addMinutes } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { promptLimit, submitPrompts, PromptLimitError } from '../../src/agents/submit.js';
import { recordPromptPause } from '../../src/state/messages.js';
import { agentDesk } from './agent-desk.js';

const HOUR_MS = 3_600_000;
const JOBS = process.env['CI'] === undefined ? 250 : 105;

// Killed processes are in processes.slow.test.ts, and what follows from each failure in model.slow.test.ts.
describe('the hourly limit', () => {
  it(`holds for ${JOBS} jobs, messages and failed attempts across restarts: never more than 100 in any rolling hour`, async () => {
    const desk = await agentDesk();
    await desk.plan(JOBS);
    desk.sandbox.setFaults([{ on: 'create', kind: 'status', status: 401, times: 1 }]);
    await submitPrompts(desk.task(), 'job');
    const waits: Date[] = [];
    for (let run = 0; run < 40 && desk.jobs().some(({ state }) => state === 'planned'); run++) {
      const onJob = () => {
        desk.clock.advance(7);
      };
      const { stopped } = await submitPrompts({ ...desk.task(), onJob }, 'job');
      if (stopped instanceof PromptLimitError) waits.push(stopped.resumeAt);
      else if (stopped !== undefined) throw stopped as Error;
      if (waits.length === 1 && desk.messages().length === 0) {
        expect(desk.sandbox.inspect().jobs).toHaveLength(99);
        const now = desk.clock.now();
        await desk.planMessage(1, 'Go on');
        const refused = (await submitPrompts(desk.task(), 'message')).stopped as Error;
        expect(refused).toBeInstanceOf(PromptLimitError);
        expect(promptLimit(desk.state, 'prj_other', now)).toBeUndefined();
        expect(refused.message).toMatch(
          /^1 prompt not sent yet: the limit of 100 prompts an hour has been reached\. The next can be sent from Nov 18, 2026 at 06:01 UTC\. Send them then with readership jobs poll, or let the schedule do it\.$/,
        );
      }
      await desk.restart();
      desk.clock.advance(20 * 60);
    }
    const { jobs, requests } = desk.sandbox.inspect();
    expect(jobs).toHaveLength(JOBS);
    expect(requests.counts.create).toEqual({ '201': JOBS, '401': 1 });
    const times = jobs.map(({ createdAt }) => Date.parse(createdAt));
    const hours = times.map((start) => times.filter((time) => time >= start && time <= start + HOUR_MS));
    expect(Math.max(...hours.map(({ length }) => length))).toBeLessThanOrEqual(100);
    expect(waits.length).toBeGreaterThan(JOBS / 100 - 1);
  });

  it('obeys a pause for as long as the platform asked, whatever a clock that was ahead stored', async () => {
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
    expect(promptLimit(desk.state, 'prj_other', now)).toBeUndefined();
  });

  it('does not say that the schedule will send the rest if improve.mode is plan', async () => {
    const desk = await agentDesk();
    await desk.plan(2);
    desk.sandbox.setFaults([{ on: 'create', kind: 'rate-limit', times: 1 }]);
    await submitPrompts(desk.task(), 'job');
    const { stopped } = await submitPrompts(desk.task(), 'job');
    expect((stopped as Error).message).toMatch(
      /^2 prompts not sent yet: .+ Send them then with readership improve --apply, or let the schedule do it if improve.mode is apply\.$/,
    );
  });
});
