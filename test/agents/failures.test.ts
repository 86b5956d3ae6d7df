import { getEventListeners } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { outcomeOf, pauseAfter } from '../../src/agents/lifecycle.js';
import { submitJobs } from '../../src/agents/submit.js';
import { Client } from '../../src/api/client.js';
import { messageOf } from '../../src/errors.js';
import type { FaultInput } from '../sandbox/faulty-sandbox.js';
import { reply, serve } from '../serve.js';
import { agentDesk } from './agent-desk.js';
import { openSandbox } from '../sandbox/open-sandbox.js';
import { withGrace } from '../../src/sleep.js';
import { DEPARTURE } from '../departure.js';

/** What each failure of a creation says about its outcome: `jobs` is what the platform has afterwards. */
const TABLE: readonly [
  name: string,
  fault: FaultInput,
  outcome: ReturnType<typeof outcomeOf>,
  jobs: 0 | 1,
][] = [
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

const failureOf = async (work: Promise<unknown>): Promise<unknown> => {
  const outcome = await work.then(
    () => ({ ok: true }),
    (error: unknown) => ({ error }),
  );
  if (!('error' in outcome)) throw new Error('it did not fail');
  return outcome.error;
};

const clientOf = (baseUrl: string, projectId = 'prj', apiKey = 'key'): Client => {
  const limits = { responseTimeoutMs: 300 };
  return new Client({ baseUrl, projectId, apiKey, keyName: 'KEY', now: () => new Date(), limits });
};

async function faultySandbox(faults: readonly FaultInput[]) {
  const { sandbox } = await openSandbox();
  sandbox.setFaults(faults);
  return { sandbox, client: clientOf(sandbox.baseUrl, sandbox.projectId, sandbox.apiKey) };
}

describe('what a failure says about the outcome of a POST', () => {
  it.each(TABLE)('%s', async (_, fault, outcome, jobs) => {
    const { sandbox, client } = await faultySandbox([fault]);
    expect(outcomeOf(await failureOf(client.createJob('Improve /', DEPARTURE)))).toBe(outcome);
    expect(sandbox.inspect().jobs).toHaveLength(jobs);
  });

  it.each(['..', '.', ''])('a reply whose id is “%s”: unknown', async (id) => {
    const server = await serve((_, response) => reply(response, 201, { id, status: 'active' }));
    const client = clientOf(server.baseUrl);
    expect(outcomeOf(await failureOf(client.createJob('Improve /', DEPARTURE)))).toBe('unknown');
    expect(messageOf(await failureOf(client.job(id)))).toContain('cannot be the id of a job');
    expect(server.seen).toHaveLength(1);
  });

  it('a reply whose prLink is a number is believed without it', async () => {
    const server = await serve((_, response) =>
      reply(response, 201, { id: 'job_1', status: 'active', prLink: 42 }),
    );
    const job = await clientOf(server.baseUrl).createJob('Improve /', DEPARTURE);
    expect(job).toEqual({ id: 'job_1', status: 'active', prLink: null });
  });

  it('a reply with the id of another job: unknown, and the next one is not sent', async () => {
    const desk = await agentDesk();
    await desk.plan(3);
    const created = () => Promise.resolve({ id: 'job_7', status: 'active' });
    const client = { createJob: created, sendMessage: created };
    const { stopped } = await submitJobs({ ...desk.task(), client });
    expect((await desk.jobs()).map(({ state }) => state)).toEqual(['active', 'unconfirmed', 'planned']);
    expect(messageOf(stopped)).toContain('job_7, which is job 1');
  });

  it('503 with Retry-After: the server itself says that it did not start', async () => {
    const server = await serve((_, response) =>
      reply(response, 503, { error: 'busy' }, { 'retry-after': '20' }),
    );
    const error = await failureOf(clientOf(server.baseUrl).createJob('Improve /', DEPARTURE));
    expect([outcomeOf(error), pauseAfter(error)]).toEqual(['not-sent', 20_000]);
  });

  it('no connection: nothing left this machine', async () => {
    const server = await serve(() => undefined);
    await server.close();
    const error = await failureOf(clientOf(server.baseUrl).createJob('Improve /', DEPARTURE));
    expect([outcomeOf(error), pauseAfter(error)]).toEqual(['not-sent', undefined]);
  });

  it('an error of our own: unknown, because it may have come after the reply', () => {
    expect(outcomeOf(new TypeError('undefined is not a function'))).toBe('unknown');
  });
});

describe('how long a failure delays prompts', () => {
  it('429: as long as the server asks, or ten minutes', async () => {
    const { client } = await faultySandbox([
      { on: 'create', kind: 'rate-limit', seconds: 90, times: 1 },
      { on: 'create', kind: 'rate-limit', retryAfter: 'none' },
    ]);
    expect(pauseAfter(await failureOf(client.createJob('Improve /', DEPARTURE)))).toBe(90_000);
    expect(pauseAfter(await failureOf(client.createJob('Improve /', DEPARTURE)))).toBe(600_000);
  });

  it('any other: not at all', async () => {
    const { client } = await faultySandbox([{ on: 'create', kind: 'status', status: 500 }]);
    expect(pauseAfter(await failureOf(client.createJob('Improve /', DEPARTURE)))).toBeUndefined();
  });
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
