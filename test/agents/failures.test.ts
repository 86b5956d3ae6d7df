import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { outcomeOf, pauseAfter } from '../../src/agents/lifecycle.js';
import { submitPrompts } from '../../src/agents/submit.js';
import type { Client } from '../../src/api/client.js';
import { TryLaterError } from '../../src/api/errors.js';
import { messageOf } from '../../src/errors.js';
import { withGrace } from '../../src/sleep.js';
import { clientOf, errorOf, openClient } from '../api/open-client.js';
import { ATTEMPT } from '../attempt.js';
import type { Fault } from '../sandbox/faulty-sandbox.js';
import { openSandbox } from '../sandbox/open-sandbox.js';
import { reply, serve } from '../serve.js';
import { agentDesk } from './agent-desk.js';

/** What each failure of a creation says about its outcome: `jobs` is what the platform has afterwards. */
const TABLE: readonly [name: string, fault: Fault, outcome: ReturnType<typeof outcomeOf>, jobs: 0 | 1][] = [
  ['429 with Retry-After', { on: 'create', kind: 'rate-limit' }, 'not-sent', 0],
  ['429 without Retry-After', { on: 'create', kind: 'rate-limit', retryAfter: 'none' }, 'not-sent', 0],
  ['429 as plain text', { on: 'create', kind: 'rate-limit', body: 'text' }, 'not-sent', 0],
  ['408', { on: 'create', kind: 'status', status: 408 }, 'unknown', 0],
  ['401', { on: 'create', kind: 'status', status: 401 }, 'not-sent', 0],
  ['402', { on: 'create', kind: 'status', status: 402 }, 'not-sent', 0],
  ['403', { on: 'create', kind: 'status', status: 403 }, 'not-sent', 0],
  ['400', { on: 'create', kind: 'status', status: 400 }, 'refused', 0],
  ['404', { on: 'create', kind: 'status', status: 404 }, 'refused', 0],
  ['422', { on: 'create', kind: 'status', status: 422 }, 'refused', 0],
  ['500 before creation', { on: 'create', kind: 'status', status: 500 }, 'unknown', 0],
  ['503 without Retry-After', { on: 'create', kind: 'status', status: 503 }, 'unknown', 0],
  ['500 after creation', { on: 'create', kind: 'status-after', status: 500 }, 'unknown', 1],
  ['reset before creation', { on: 'create', kind: 'reset' }, 'unknown', 0],
  ['timeout', { on: 'create', kind: 'timeout' }, 'unknown', 0],
  ['reply lost', { on: 'create', kind: 'lost-reply' }, 'unknown', 1],
  ['reply cut', { on: 'create', kind: 'cut-body' }, 'unknown', 1],
  ['a web page', { on: 'create', kind: 'html' }, 'unknown', 1],
  ['a reply without an id', { on: 'create', kind: 'missing-field', field: 'id' }, 'unknown', 1],
];

/** What the platform says when a job is created. */
const failureAt = (client: Client) => errorOf(client.createJob('Improve /', ATTEMPT));
const failureAfter = async (...answer: Parameters<typeof clientOf>) =>
  failureAt((await clientOf(...answer)).client);

async function faultySandbox(faults: readonly Fault[]) {
  const { sandbox } = await openSandbox();
  sandbox.setFaults(faults);
  // Short only where no response comes, so that a slow machine changes no outcome.
  const limits = faults.some(({ kind }) => kind === 'timeout') ? { responseTimeoutMs: 300 } : {};
  const { baseUrl, projectId, apiKey } = sandbox;
  return { sandbox, client: openClient(baseUrl, { projectId, apiKey, limits, now: () => new Date() }) };
}

describe('what a failure says about the outcome of a POST', () => {
  it.each(TABLE)('%s', async (_, fault, outcome, jobs) => {
    const { sandbox, client } = await faultySandbox([fault]);
    expect(outcomeOf(await failureAt(client))).toBe(outcome);
    expect(sandbox.inspect().jobs).toHaveLength(jobs);
  });

  it.each([
    ...([301, 307, 308] as const).map((status) => [status, 'refused'] as const),
    // Some servers answer a creation with the address of the job.
    ...([302, 303, 304] as const).map((status) => [status, 'unknown'] as const),
    [204, 'unknown'],
  ] as const)('a reply with %i and no job: %s', async (status, outcome) => {
    const answer = (response: ServerResponse) => reply(response, status, '', { location: '/v2/jobs/7' });
    expect(outcomeOf(await failureAfter(answer))).toBe(outcome);
  });

  it.each(['..', '.', ''])('a reply whose id is “%s”: unknown', async (id) => {
    const { client, server } = await clientOf((response) => reply(response, 201, { id, status: 'active' }));
    expect(outcomeOf(await failureAt(client))).toBe('unknown');
    expect(messageOf(await errorOf(client.job(id)))).toContain('cannot be the id of a job');
    expect(server.seen).toHaveLength(1);
  });

  it('a reply with the id of another job: unknown, and the next one is not sent', async () => {
    const desk = await agentDesk();
    await desk.plan(3);
    const created = () => Promise.resolve({ id: 'job_7', status: 'active' });
    const client = { createJob: created, sendMessage: created };
    const { stopped } = await submitPrompts({ ...desk.task(), client }, 'job');
    expect(desk.jobs().map(({ state }) => state)).toEqual(['active', 'unknown', 'planned']);
    expect(messageOf(stopped)).toContain('job_7, which is job 1');
  });

  it('a message to a job that may not exist is not sent, and waits', async () => {
    const desk = await agentDesk();
    await desk.plan(1);
    desk.sandbox.setFaults([{ on: 'create', kind: 'lost-reply', times: 1 }]);
    await submitPrompts(desk.task(), 'job');
    await desk.planMessage(1, 'Mention the limits');
    expect(await submitPrompts(desk.task(), 'message')).toEqual({ sent: 0 });
    expect(desk.messages()).toMatchObject([{ state: 'planned' }]);
  });

  it.each([
    [20, 20_000, '20 s.'],
    [7_000, 3_600_000, '1 h 0 min or more.'],
  ])('503 with Retry-After %i: the server itself says that it did not start', async (asked, ms, words) => {
    const headers = { 'retry-after': String(asked) };
    const error = await failureAfter((response) => reply(response, 503, { error: 'busy' }, headers));
    expect([outcomeOf(error), pauseAfter(error)]).toEqual(['not-sent', ms]);
    expect(messageOf(error)).toContain(`It asks to wait ${words}`);
  });

  it('no connection: nothing left this machine', async () => {
    const server = await serve(() => undefined);
    await server.close();
    const error = await failureAt(openClient(server.baseUrl));
    expect([outcomeOf(error), pauseAfter(error)]).toEqual(['not-sent', undefined]);
  });

  it('an error of our own: unknown, because it may have come after the reply', () => {
    expect(outcomeOf(new TypeError('undefined is not a function'))).toBe('unknown');
    const operation = { name: 'create a job', method: 'POST', url: '/' } as const;
    expect(outcomeOf(new TryLaterError(operation, 'connection-lost', 'reset'))).toBe('unknown');
  });
});

it('a 429 delays prompts as long as the server asks, or ten minutes; any other failure does not', async () => {
  const { client } = await faultySandbox([
    { on: 'create', kind: 'rate-limit', seconds: 90, times: 1 },
    { on: 'create', kind: 'rate-limit', retryAfter: 'none', times: 1 },
    { on: 'create', kind: 'status', status: 500 },
  ]);
  const pauses: unknown[] = [];
  for (let time = 0; time < 3; time++) pauses.push(pauseAfter(await failureAt(client)));
  expect(pauses).toEqual([90_000, 600_000, undefined]);
});

it('an interruption gives what is being sent some seconds, with one listener however much is sent', () => {
  vi.useFakeTimers();
  try {
    const interruption = new AbortController();
    const signals = Array.from({ length: 20 }, () => withGrace(interruption.signal));
    expect(getEventListeners(interruption.signal, 'abort')).toHaveLength(1);
    const stopped = () => signals.filter(({ aborted }) => aborted).length;
    interruption.abort();
    expect(stopped()).toBe(0);
    vi.advanceTimersByTime(10_000);
    expect(stopped()).toBe(20);
  } finally {
    vi.useRealTimers();
  }
});
