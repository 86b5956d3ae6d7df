import { addSeconds } from 'date-fns';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { changeJob, changePrompt } from '../../src/agents/jobs.js';
import { pollJobs, type PollTask } from '../../src/agents/poll.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { messageOf } from '../../src/errors.js';
import { pollStep } from '../../src/steps/poll.js';
import { clientOf } from '../api/open-client.js';
import { reply } from '../serve.js';
import { type AgentDesk, agentDesk } from './agent-desk.js';

const taskOf = (desk: AgentDesk, changes: Partial<PollTask> = {}): PollTask => ({
  ...{ state: desk.state, client: desk.client, project: desk.project, now: desk.clock.now },
  ...changes,
});

/** A desk with jobs that are running on the platform. */
async function deskWithJobs(count: number, options: Parameters<typeof agentDesk>[0] = {}) {
  const desk = await agentDesk({ jobSeconds: 3600, ...options });
  await desk.plan(count);
  await submitPrompts(desk.task(), 'job');
  return desk;
}

const secondsToNextPoll = (desk: AgentDesk): number => {
  const { next_poll_at } = desk.job(1);
  return next_poll_at === null ? NaN : (next_poll_at.getTime() - desk.clock.now().getTime()) / 1000;
};

describe('polling', () => {
  it('requests only what is due, less and less often, across restarts', async () => {
    const desk = await deskWithJobs(1);
    const delays = [secondsToNextPoll(desk)];
    for (let round = 0; round < 6; round++) {
      await pollJobs(taskOf(desk));
      desk.clock.advance(secondsToNextPoll(desk));
      await desk.restart();
      await pollJobs(taskOf(desk));
      delays.push(secondsToNextPoll(desk));
    }
    expect(delays).toEqual([1, 1, 2, 4, 8, 16, 32]);
    expect(desk.sandbox.inspect().requests.counts.job).toEqual({ '200': 6 });
    // A message begins anew.
    await desk.planMessage(1, 'Go on');
    await submitPrompts(desk.task(), 'message');
    expect([secondsToNextPoll(desk), desk.job(1).polls]).toEqual([1, 0]);
  });

  it('is not put off by a time that a clock stored that was ahead', async () => {
    const desk = await deskWithJobs(2);
    const polledWith = async (seconds: number, note: string | null) => {
      const next = addSeconds(desk.clock.now(), seconds);
      await desk.change('UPDATE jobs SET next_poll_at = $next, note = $note', { next, note });
      const before = desk.sandbox.inspect().requests.counts.job?.['200'] ?? 0;
      await pollJobs(taskOf(desk));
      return (desk.sandbox.inspect().requests.counts.job?.['200'] ?? 0) - before;
    };
    expect(await polledWith(5 * 60, null)).toBe(0);
    for (const seconds of [301, 3 * 3_600, 400 * 86_400]) expect(await polledWith(seconds, null)).toBe(2);
    // The platform may have asked for an hour.
    expect(await polledWith(59 * 60, 'rate limited')).toBe(0);
    expect(await polledWith(61 * 60, 'rate limited')).toBe(2);
  });

  it('follows each job to its end', async () => {
    const outcomes = ['pull-request', 'no-change', 'failed', 'archived'] as const;
    const desk = await deskWithJobs(4, { outcomes, jobSeconds: 10 });
    desk.clock.advance(60);
    const { ended, stillActive } = await pollJobs(taskOf(desk));
    expect(stillActive).toEqual([]);
    expect(ended.map(({ state, pr_link }) => [state, pr_link !== null])).toEqual([
      ['completed', true],
      ['completed', false],
      ['failed', false],
      ['archived', true],
    ]);
  });

  it('treats an unknown status as “still going”, stores it as sent, and keeps a link that is not sent again', async () => {
    const desk = await deskWithJobs(1);
    const prLink = 'https://code.example.com/pull/1';
    for (const answer of [{ status: 'drafting', prLink }, { status: 'thinking' }]) {
      desk.clock.advance(60);
      await pollJobs(taskOf(desk, { client: { job: (id) => Promise.resolve({ id, ...answer }) } }));
    }
    expect(desk.job(1)).toMatchObject({ state: 'active', remote_status: 'thinking', pr_link: prLink });
  });

  it('keeps 200 characters of a status, and no link that no browser opens', async () => {
    const desk = await deskWithJobs(1);
    const answer = {
      status: `${'x'.repeat(199)}🦆${'y'.repeat(250_000)}`,
      prLink: `https://${'z'.repeat(9_000)}`,
    };
    desk.clock.advance(60);
    const { client } = await clientOf((response) => reply(response, 200, { id: 'job_000001', ...answer }));
    await pollJobs(taskOf(desk, { client }));
    const short = { remote_status: 'x'.repeat(199), pr_link: null };
    expect(desk.job(1)).toMatchObject({ state: 'active', ...short });
  });

  it('looks for the pull request of a completed job until an hour after its end', async () => {
    const desk = await deskWithJobs(2, { outcomes: ['no-change'], jobSeconds: 4 });
    const pollAfter = (seconds: number, changes: Partial<PollTask> = {}) => {
      desk.clock.advance(seconds);
      return pollJobs(taskOf(desk, changes));
    };
    expect((await pollAfter(60)).ended).toHaveLength(2);
    // It is known that they have ended, so it does not matter if the platform has forgotten one.
    desk.sandbox.setFaults([{ on: 'job', kind: 'status', status: 404, times: 1 }]);
    expect(await pollAfter(60)).toEqual({ ended: [], stillActive: [], errors: [] });
    const prLink = 'https://code.example.com/acme/docs/pull/1';
    const job = (id: string) =>
      id === 'job_000001' ? Promise.resolve({ id, status: 'completed', prLink }) : desk.client.job(id);
    await pollAfter(60, { client: { job } });
    for (const seconds of [3_480, 1, 86_400]) await pollAfter(seconds);
    expect(desk.jobs().map(({ state, pr_link, note }) => [state, pr_link, note])).toEqual([
      ['completed', prLink, null],
      ['completed', null, null],
    ]);
    expect(desk.sandbox.inspect().requests.counts.job).toEqual({ '200': 5, '404': 1 });
  });

  it('believes no answer for another job', async () => {
    const desk = await deskWithJobs(1);
    const { remote_id } = desk.job(1);
    const other = { id: `${remote_id}0`, status: 'completed' };
    const { client } = await clientOf((response) => reply(response, 200, other));
    desk.clock.advance(5);
    const { errors } = await pollJobs(taskOf(desk, { client }));
    expect(errors.map(messageOf)).toEqual([
      expect.stringContaining(`answered for another job, “${remote_id}0”`),
    ]);
    expect(desk.job(1)).toMatchObject({ state: 'active', remote_id, remote_status: 'active' });
    await desk.planMessage(1, 'Go on');
    await submitPrompts({ ...desk.task(), client }, 'message');
    expect(desk.messages()).toMatchObject([{ state: 'unknown' }]);
  });

  it('ends when it should, although the platform answers 429 to each of three jobs, or nothing', async () => {
    const desk = await deskWithJobs(3);
    desk.clock.advance(5);
    const busy = (response: ServerResponse) => reply(response, 429, {}, { 'retry-after': '1' });
    const { client, server } = await clientOf(busy, { limits: { responseTimeoutMs: 60_000 } });
    const task = taskOf(desk, { client, deadlineMs: performance.now() + 300, keepsPolling: true });
    const { errors, stillActive } = await pollJobs(task);
    expect([errors, stillActive.length, server.seen.length]).toEqual([[], 3, 1]);
  });

  it('polls no job again before the platform wants requests', async () => {
    const desk = await deskWithJobs(2);
    desk.clock.advance(5);
    const retries = { retries: 0, minDelayMs: 1, maxDelayMs: 1 };
    const { client, server } = await clientOf(
      (response) => reply(response, 429, {}, { 'retry-after': '900' }),
      { now: desk.clock.now, retries },
    );
    const { detail } = await pollStep(desk.parts({ platform: { clientOf: () => client } }), {});
    expect([detail.pollsInMs, server.seen.length, secondsToNextPoll(desk)]).toEqual([900_000, 1, 900]);
  });

  it('keeps a job active after errors, with a note, and sends nothing more after a 429', async () => {
    const desk = await deskWithJobs(3);
    desk.clock.advance(5);
    desk.sandbox.setFaults([{ on: 'job', kind: 'rate-limit' }]);
    const { errors, stillActive } = await pollJobs(taskOf(desk));
    expect(errors).toHaveLength(1);
    expect(stillActive).toHaveLength(3);
    expect(desk.sandbox.inspect().requests.counts.job).toEqual({ '429': 1 });
    expect(desk.job(1).note).toMatch('the rate limit has been reached');
    desk.sandbox.setFaults([]);
    desk.clock.advance(60);
    await pollJobs(taskOf(desk));
    expect(desk.job(1).note).toBeNull();
  });

  it('does not end a reopened job after an error, although the platform last answered “completed”', async () => {
    const desk = await deskWithJobs(1, { outcomes: ['no-change'], jobSeconds: 4 });
    desk.clock.advance(60);
    await pollJobs(taskOf(desk));
    const completed = desk.job(1);
    const now = desk.clock.now();
    await desk.planMessage(1, 'Go on');
    desk.sandbox.setFaults([{ on: 'message', kind: 'lost-reply' }]);
    await submitPrompts(desk.task(), 'message');
    const [message = expect.fail('no message')] = desk.messages();
    const resolved = { event: 'found-sent', now, cause: 'resolved: sent', nextPollAt: now } as const;
    await desk.state.transaction(() => changePrompt(desk.state, { job: completed, message }, resolved));
    desk.sandbox.setFaults([{ on: 'job', kind: 'status', status: 503, times: 1 }]);
    const { ended, errors } = await pollJobs(taskOf(desk));
    expect([ended.length, errors.length]).toEqual([0, 1]);
    expect(desk.job(1)).toMatchObject({ state: 'active', remote_status: 'completed' });
    desk.clock.advance(60);
    await pollJobs(taskOf(desk));
    const { state, pr_link } = desk.job(1);
    expect([state, pr_link !== null]).toEqual(['completed', true]);
  });

  it.each([
    ['ended', { event: 'found-over' }, { state: 'failed', remote_id: 'job_000001' }],
    ['found', { event: 'found-sent', remote: { id: 'job_9' } }, { state: 'active', remote_id: 'job_9' }],
  ] as const)('does not change a job that a person %s meanwhile', async (_, finding, expected) => {
    const desk = await deskWithJobs(1);
    desk.clock.advance(5);
    const job = async (id: string) => {
      const change = { ...finding, now: desk.clock.now(), cause: 'recorded by a person' };
      await desk.state.transaction(() => changeJob(desk.state, desk.job(1), change));
      return { id, status: 'completed' };
    };
    expect((await pollJobs(taskOf(desk, { client: { job } }))).errors).toEqual([]);
    expect(desk.job(1)).toMatchObject(expected);
  });

  it('ends with the reason if it is stopped while waiting', async () => {
    const desk = await deskWithJobs(1);
    const stop = new AbortController();
    const reason = new Error('told to stop');
    desk.clock.advance(5);
    const client = {
      job: (id: string) => {
        stop.abort(reason);
        return Promise.resolve({ id, status: 'active' });
      },
    };
    const endless = { keepsPolling: true, deadlineMs: performance.now() + 60_000, signal: stop.signal };
    await expect(pollJobs(taskOf(desk, { client, ...endless }))).rejects.toBe(reason);
  });

  it.each([404, 410])('continues with other jobs if the platform answers %i for one', async (status) => {
    const desk = await deskWithJobs(2, { jobSeconds: 4 });
    desk.clock.advance(60);
    desk.sandbox.setFaults([{ on: 'job', kind: 'status', status, times: 1 }]);
    const { detail, error } = await pollStep(desk.parts(), {});
    expect(detail.ended.map(({ id }) => id)).toEqual([2]);
    const words =
      /the server answered 4.+If job 1 was deleted on the platform: readership jobs settle 1 --ended$/;
    expect(messageOf(error)).toMatch(words);
  });
});
