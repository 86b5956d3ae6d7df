import { addMinutes } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { changeJob } from '../../src/agents/ledger.js';
import { planMessage, readTransitions } from '../../src/agents/messages.js';
import { nextTurn, submitPrompts, TurnError } from '../../src/agents/submit.js';
import type { FaultInput } from '../sandbox/faulty-sandbox.js';
import { agentDesk } from './agent-desk.js';

const HOUR_MS = 3_600_000;
const JOBS = process.env['CI'] === undefined ? 250 : 105;

// Killed processes are in test/app/loss.slow.test.ts.
describe('submitting jobs', () => {
  it('stores the intent before the POST and every change after it', async () => {
    const desk = await agentDesk();
    await desk.plan(1);
    expect(await submitPrompts(desk.task(), 'job')).toEqual({ sent: 1 });
    expect(await desk.jobs()).toMatchObject([
      { state: 'active', remote_id: 'job_000001', remote_status: 'active' },
    ]);
    const transitions = await readTransitions(desk.warehouse, 1);
    expect(transitions.map(({ to_state }) => to_state)).toEqual(['planned', 'submitting', 'active']);
  });
});

describe('the hourly limit', () => {
  it(`holds for ${JOBS} jobs, messages and failed attempts across restarts: never more than 100 in any rolling hour`, async () => {
    const desk = await agentDesk();
    await desk.plan(JOBS);
    desk.sandbox.setFaults([{ on: 'create', kind: 'status', status: 401, times: 1 }]);
    await submitPrompts(desk.task(), 'job');
    const waits: Date[] = [];
    for (let run = 0; run < 40 && (await desk.jobs()).some(({ state }) => state === 'planned'); run++) {
      const onJob = () => {
        desk.clock.advance(7);
      };
      const { stopped } = await submitPrompts({ ...desk.task(), onJob }, 'job');
      if (stopped instanceof TurnError) waits.push(stopped.resumeAt);
      else if (stopped !== undefined) throw stopped as Error;
      if (waits.length === 1 && (await desk.messages()).length === 0) {
        expect(desk.sandbox.inspect().jobs).toHaveLength(99);
        const now = desk.clock.now();
        await planMessage(desk.warehouse, await desk.job(1), { origin: 'typed', prompt: 'Go on', now });
        const refused = (await submitPrompts(desk.task(), 'message')).stopped as Error;
        expect(refused).toBeInstanceOf(TurnError);
        expect(await nextTurn(desk.warehouse, 'prj_other', now)).toBeUndefined();
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
    for (const start of times)
      expect(times.filter((time) => time >= start && time <= start + HOUR_MS).length).toBeLessThanOrEqual(
        100,
      );
    expect(waits.length).toBeGreaterThan(JOBS / 100 - 1);
  });

  it('obeys a pause for as long as the platform asked, whatever a clock that was ahead stored', async () => {
    const desk = await agentDesk();
    const now = desk.clock.now();
    const turnAfter = async (pausedIn: string, delay: string) => {
      const sql =
        'INSERT INTO agent_pauses SELECT $project, $now::TIMESTAMP + $in::INTERVAL, $now::TIMESTAMP + $in::INTERVAL + $delay::INTERVAL, $in';
      const values = { project: desk.project, now, in: pausedIn, delay };
      await desk.warehouse.transaction((transaction) => transaction.execute(sql, values));
      return (await nextTurn(desk.warehouse, desk.project, now))?.at;
    };
    expect(await turnAfter('400 days', '1 hour')).toBeUndefined();
    expect(await turnAfter('3 hours', '1 hour')).toBeUndefined();
    expect(await turnAfter('-10 minutes', '1 hour')).toEqual(addMinutes(now, 50));
    expect(await turnAfter('30 minutes', '1 hour')).toEqual(addMinutes(now, 60));
    expect(await nextTurn(desk.warehouse, 'prj_other', now)).toBeUndefined();
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

  it.each<[string, FaultInput, number]>([
    ['as long as the server asks', { on: 'create', kind: 'rate-limit', seconds: 1800, times: 1 }, 1800],
    [
      'ten minutes if it does not say',
      { on: 'create', kind: 'rate-limit', retryAfter: 'none', times: 1 },
      600,
    ],
  ])('pauses after a 429, across restarts: %s', async (_, fault, seconds) => {
    const desk = await agentDesk();
    await desk.plan(2);
    desk.sandbox.setFaults([fault]);
    await submitPrompts(desk.task(), 'job');
    await desk.restart();
    desk.clock.advance(seconds - 1);
    expect((await submitPrompts(desk.task(), 'job')).stopped).toBeInstanceOf(TurnError);
    expect(desk.sandbox.inspect().requests.counts.create).toEqual({ '429': 1 });
    desk.clock.advance(1);
    expect((await submitPrompts(desk.task(), 'job')).stopped).toBeUndefined();
    expect(desk.sandbox.inspect().jobs).toHaveLength(2);
  });
});

describe('follow-up messages', () => {
  const messagesOf = (job: { messages: readonly { prompt: string }[] } | undefined) =>
    job?.messages.map(({ prompt }) => prompt);

  async function deskWithEndedJob() {
    const desk = await agentDesk();
    await desk.plan(1);
    await submitPrompts(desk.task(), 'job');
    const job = await desk.job(1);
    const now = desk.clock.now();
    const remote = { id: job.remote_id ?? '', status: 'completed' };
    await changeJob(desk.warehouse, job, {
      event: 'polled',
      now,
      cause: 'the platform says completed',
      remote,
    });
    await planMessage(desk.warehouse, await desk.job(1), { origin: 'typed', prompt: 'And the errors?', now });
    return desk;
  }

  it('reopen the job, which is polled again, starting with the shortest delay', async () => {
    const desk = await deskWithEndedJob();
    await submitPrompts(desk.task(), 'message');
    expect(await desk.messages()).toMatchObject([{ state: 'sent' }]);
    expect(await desk.job(1)).toMatchObject({ state: 'active', ended_at: null, polls: 0 });
    expect(messagesOf(desk.sandbox.inspect().jobs[0])).toEqual(['And the errors?']);
  });

  it.each<[string, FaultInput, string, number]>([
    ['reply lost', { on: 'message', kind: 'lost-reply', times: 1 }, 'unconfirmed', 1],
    ['500 after it arrived', { on: 'message', kind: 'status-after', times: 1 }, 'unconfirmed', 1],
    ['reset', { on: 'message', kind: 'reset', times: 1 }, 'unconfirmed', 0],
    ['refused', { on: 'message', kind: 'status', status: 404, times: 1 }, 'refused', 0],
    ['key expired', { on: 'message', kind: 'status', status: 401, times: 1 }, 'sent', 1],
  ])('are sent at most once: %s', async (_, fault, state, arrived) => {
    const desk = await deskWithEndedJob();
    desk.sandbox.setFaults([fault]);
    expect(await submitPrompts(desk.task(), 'message')).toMatchObject({ sent: 0 });
    await desk.restart();
    await submitPrompts(desk.task(), 'message');
    expect(await desk.messages()).toMatchObject([{ state }]);
    expect(messagesOf(desk.sandbox.inspect().jobs[0])).toHaveLength(arrived);
  });
});
