import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { changeJob } from '../../src/agents/ledger.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { runDue } from '../../src/service/run.js';
import { readLastRuns, recordStepEnd, recordStepStart } from '../../src/steps/runs.js';
import { agentDesk } from '../agents/agent-desk.js';
import { tempDir } from '../temp-dir.js';

it('a failed poll is followed by a successful one if its job was resolved by hand and no other is active', async () => {
  const desk = await agentDesk({ jobSeconds: 3600 });
  const parts = desk.parts({ workspace: { historyFile: join(await tempDir(), 'history.duckdb') } });
  const runAfter = async (minutes: number) => {
    desk.clock.advance(minutes * 60);
    const outcome = await runDue(parts, new Date(0));
    const runs = await readLastRuns(desk.warehouse, desk.clock.now());
    return [outcome?.polled !== undefined, runs.find(({ step }) => step === 'poll')?.outcome];
  };
  for (const step of ['export', 'improve', 'report', 'publish'] as const) {
    await recordStepStart(desk.warehouse, step, step, desk.clock.now());
    const end = { outcome: 'done', summary: '', resume_at: null, now: desk.clock.now() } as const;
    await recordStepEnd(desk.warehouse, step, step, end);
  }
  expect(await runAfter(5)).toEqual([false, undefined]);

  await desk.plan(1);
  await submitPrompts(desk.task(), 'job');
  desk.sandbox.setFaults([{ on: 'job', kind: 'status', status: 404 }]);
  expect(await runAfter(5)).toEqual([true, 'failed']);

  const change = { event: 'found-over', now: desk.clock.now(), cause: 'resolved' } as const;
  await changeJob(desk.warehouse, await desk.job(1), change);
  expect(await runAfter(5)).toEqual([true, 'done']);
  expect(await runAfter(5)).toEqual([false, 'done']);

  // If it cannot be determined whether everything is published, publishing says why.
  vi.spyOn(desk.warehouse, 'exclusive').mockRejectedValue(new Error('out of memory'));
  const outcome = await runDue(parts, new Date(0));
  expect(outcome?.outages.map(({ step }) => step)).toEqual(['publish']);
});
