import { join } from 'node:path';
import { expect, it } from 'vitest';
import { changeJob } from '../../src/agents/jobs.js';
import { isPollDue } from '../../src/agents/poll.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { isSendDue, runDue } from '../../src/service/run.js';
import { readLastRuns, recordStepEnd, recordStepStart } from '../../src/state/runs.js';
import { agentDesk } from '../agents/agent-desk.js';
import { tempDir } from '../temp-dir.js';

it('a failed poll is followed by a successful one if its job was resolved by hand and no other is active', async () => {
  const desk = await agentDesk({ jobSeconds: 3600 });
  const parts = desk.parts({ workspace: { historyFile: join(await tempDir(), 'history.duckdb') } });
  const runAfter = async (minutes: number) => {
    desk.clock.advance(minutes * 60);
    const outcome = await runDue(parts, new Date(0));
    const runs = readLastRuns(desk.state, desk.clock.now());
    return [outcome?.polled !== undefined, runs.find(({ step }) => step === 'poll')?.outcome];
  };
  for (const step of ['export', 'improve', 'report', 'publish'] as const) {
    await recordStepStart(desk.state, step, step, desk.clock.now());
    const end = { outcome: 'done', summary: '', resume_at: null, now: desk.clock.now() } as const;
    await recordStepEnd(desk.state, step, step, end);
  }
  expect(await runAfter(5)).toEqual([false, undefined]);

  await desk.plan(1);
  await submitPrompts(desk.task(), 'job');
  desk.sandbox.setFaults([{ on: 'job', kind: 'status', status: 404 }]);
  expect(await runAfter(5)).toEqual([true, 'failed']);

  const change = { event: 'found-over', now: desk.clock.now(), cause: 'resolved' } as const;
  await desk.state.transaction(() => changeJob(desk.state, desk.job(1), change));
  expect(await runAfter(5)).toEqual([true, 'done']);
  expect(await runAfter(5)).toEqual([false, 'done']);
});

it('a planned job that no person approved is to be sent only where jobs are sent by themselves', async () => {
  const desk = await agentDesk();
  const isDue = (sendsAll: boolean) => isPollDue(desk.state, sendsAll, desk.clock.now());
  expect([isDue(false), isDue(true)]).toEqual([false, false]);
  await desk.planJob('/flagged');
  expect([isDue(false), isDue(true)]).toEqual([false, true]);
  await desk.planJob('/approved', { is_approved: true });
  expect([isDue(false), isDue(true)]).toEqual([true, true]);
});

it('what a person approved or wrote is to be sent at once, until polling was tried', async () => {
  const desk = await agentDesk();
  const { workspace } = desk.parts();
  const isDue = () => isSendDue(desk.state, workspace.settings, new Date(0), desk.clock.now());
  await desk.planJob('/flagged');
  expect(isDue()).toBe(false);
  await desk.planJob('/approved', { is_approved: true });
  expect(isDue()).toBe(true);
  desk.clock.advance(1);
  await recordStepStart(desk.state, 'first', 'poll', desk.clock.now());
  const failed = { outcome: 'failed', summary: '', resume_at: null, now: desk.clock.now() } as const;
  await recordStepEnd(desk.state, 'first', 'poll', failed);
  // It is tried again when the schedule, or the delay after a failure, says so.
  expect(isDue()).toBe(false);
  desk.clock.advance(1);
  await submitPrompts({ ...desk.task(), sendsAll: false }, 'job');
  await desk.planMessage(2, 'Mention the limits');
  // It waits for the end of that delay too.
  expect(isDue()).toBe(false);
  desk.clock.advance(60);
  expect(isDue()).toBe(true);
});
