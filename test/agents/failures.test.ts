import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { outcomeOf, pauseAfter } from '../../src/agents/lifecycle.js';
import { submitPrompts } from '../../src/agents/submit.js';
import type { Client } from '../../src/api/client.js';
import {
  ContractError,
  RefusedError,
  TryLaterError,
  type TryLaterReason,
  UnknownOutcomeError,
} from '../../src/api/errors.js';
import { messageOf } from '../../src/errors.js';
import { withGrace } from '../../src/sleep.js';
import { clientOf, errorOf, openClient } from '../api/open-client.js';
import { ATTEMPT } from '../attempt.js';
import { reply, serve } from '../serve.js';
import { agentDesk } from './agent-desk.js';

/** What the platform says when a job is created. */
const failureAt = (client: Client) => errorOf(client.createJob('Improve /', ATTEMPT));
const failureAfter = async (...answer: Parameters<typeof clientOf>) =>
  failureAt((await clientOf(...answer)).client);

describe('what a failure says about the outcome of a POST', () => {
  const POST = { name: 'create the agent job', method: 'POST', url: '/' } as const;
  const refusedWith = (status: number) => new RefusedError(POST, status, 'no');
  const later = (reason: TryLaterReason) => new TryLaterError(POST, reason, 'no');

  // Which answers of the platform lead to which errors is in test/api/errors.test.ts.
  it.each([
    ...(['rate-limited', 'not-taken', 'unreachable'] as const).map(
      (reason) => [later(reason), 'not-sent'] as const,
    ),
    ...(['server-error', 'connection-lost'] as const).map((reason) => [later(reason), 'unknown'] as const),
    ...[401, 402, 403].map((status) => [refusedWith(status), 'not-sent'] as const),
    ...[400, 404, 422].map((status) => [refusedWith(status), 'refused'] as const),
    [new UnknownOutcomeError(POST, 'no'), 'unknown'],
    [new ContractError(POST, 'no'), 'unknown'],
    // An error of our own may have come after the reply.
    [new TypeError('undefined is not a function'), 'unknown'],
  ] as const)('%s: %s', (error, outcome) => {
    expect(outcomeOf(error)).toBe(outcome);
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
    [7_000, 3_600_000, '1 h 0 min or more, until Nov 18, 2026 at 06:00 UTC.'],
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
});

it.each([
  [{ 'retry-after': '90' }, 429, 90_000],
  [{}, 429, 600_000],
  [{}, 500, undefined],
])('a refusal with %j and %i delays prompts for %s ms', async (headers, status, pauseMs) => {
  const error = await failureAfter((response) => reply(response, status, { error: 'no' }, headers));
  expect(pauseAfter(error)).toBe(pauseMs);
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
