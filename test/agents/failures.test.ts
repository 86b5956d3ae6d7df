import { addDays, addMinutes } from 'date-fns';
import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { intentOf } from '../../src/agents/intents.js';
import { type Job, readJobs } from '../../src/agents/job.js';
import { outcomeOf, pauseAfter } from '../../src/agents/lifecycle.js';
import { type JobMessage, planMessage, readMessages } from '../../src/agents/messages.js';
import { JOBS, MESSAGES } from '../../src/agents/reconcile.js';
import { submitPrompts } from '../../src/agents/submit.js';
import type { Client } from '../../src/api/client.js';
import { TryLaterError } from '../../src/api/errors.js';
import type { EffectsJournal } from '../../src/effects/journal.js';
import { reconcile } from '../../src/effects/reconcile.js';
import { countDifferences } from '../../src/effects/settle.js';
import { messageOf } from '../../src/errors.js';
import { withGrace } from '../../src/sleep.js';
import { timestampColumn } from '../../src/warehouse/query.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { clientOf, errorOf, openClient } from '../api/open-client.js';
import { DEPARTURE } from '../departure.js';
import { execute, liveWarehouse, rowsOf, valuesOf } from '../open-warehouse.js';
import type { Fault } from '../sandbox/faulty-sandbox.js';
import { NOW, openSandbox } from '../sandbox/open-sandbox.js';
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
const failureAt = (client: Client) => errorOf(client.createJob('Improve /', DEPARTURE));
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
    [301, 'refused'],
    [302, 'unknown'],
    [303, 'unknown'],
    [304, 'unknown'],
    [307, 'refused'],
    [308, 'refused'],
  ] as const)(
    '%i: %s, as some servers answer a creation with the address of the job',
    async (status, outcome) => {
      const answer = (response: ServerResponse) => reply(response, status, '', { location: '/v2/jobs/7' });
      expect(outcomeOf(await failureAfter(answer))).toBe(outcome);
    },
  );

  it.each(['..', '.', ''])('a reply whose id is “%s”: unknown', async (id) => {
    const { client, server } = await clientOf((response) => reply(response, 201, { id, status: 'active' }));
    expect(outcomeOf(await failureAt(client))).toBe('unknown');
    expect(messageOf(await errorOf(client.job(id)))).toContain('cannot be the id of a job');
    expect(server.seen).toHaveLength(1);
  });

  it('a reply without a body: unknown, and said to be empty', async () => {
    const error = await failureAfter((response) => reply(response, 204, ''));
    expect(outcomeOf(error)).toBe('unknown');
    expect(messageOf(error)).toContain('the response is empty. Check that baseUrl');
  });

  it('a reply whose id is a number is believed, and one whose prLink is a number without it', async () => {
    const answer = { id: 7, status: 'active', prLink: 42 };
    const { client } = await clientOf((response) => reply(response, 201, answer));
    const job = { id: '7', status: 'active', prLink: null };
    expect(await client.createJob('Improve /', DEPARTURE)).toEqual(job);
    expect(await client.job('7')).toEqual(job);
  });

  it('a reply with the id of another job: unknown, and the next one is not sent', async () => {
    const desk = await agentDesk();
    await desk.plan(3);
    const created = () => Promise.resolve({ id: 'job_7', status: 'active' });
    const client = { createJob: created, sendMessage: created };
    const { stopped } = await submitPrompts({ ...desk.task(), client }, 'job');
    expect((await desk.jobs()).map(({ state }) => state)).toEqual(['active', 'unconfirmed', 'planned']);
    expect(messageOf(stopped)).toContain('job_7, which is job 1');
  });

  it('a message to a job that may not exist is not sent, and waits', async () => {
    const desk = await agentDesk();
    await desk.plan(1);
    desk.sandbox.setFaults([{ on: 'create', kind: 'lost-reply', times: 1 }]);
    await submitPrompts(desk.task(), 'job');
    const message = { origin: 'typed', prompt: 'Mention the limits', now: NOW } as const;
    await planMessage(desk.warehouse, await desk.job(1), message);
    expect(await submitPrompts(desk.task(), 'message')).toEqual({ sent: 0 });
    expect(await desk.messages()).toMatchObject([{ state: 'planned' }]);
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

describe('the jobs and messages of a journal and a database', () => {
  it('are rebuilt from each other, and nothing that may have been sent is planned again', async () => {
    const desk = await agentDesk();
    const LATER = addDays(NOW, 1);
    const agree = async (kind: 'job' | 'message', of: EffectsJournal, warehouse: Warehouse) =>
      countDifferences(await reconcile(kind === 'job' ? JOBS : MESSAGES, of, warehouse, LATER));
    await desk.plan(3);
    desk.clock.advance(60);
    for (const kind of [{ kind: 'status', status: 422 }, { kind: 'lost-reply' }] as const) {
      desk.sandbox.setFaults([{ on: 'create', times: 1, ...kind }]);
      await submitPrompts(desk.task(), 'job');
    }
    await submitPrompts(desk.task(), 'job');
    await desk.plan(2, 4);
    const [, , active = expect.fail(), ...planned] = await desk.jobs();
    for (const prompt of ['Mention the limits', 'Shorter, please'])
      await planMessage(desk.warehouse, active, { origin: 'typed', prompt, now: NOW });
    desk.sandbox.setFaults([{ on: 'message', kind: 'lost-reply', after: 1, times: 1 }]);
    await submitPrompts(desk.task(), 'message');
    // As processes leave them that are killed before the database knows.
    const [, sent] = await Promise.all(
      planned.map((job) => desk.journal.depart(intentOf({ job }), NOW, () => Promise.resolve())),
    );
    await sent?.ended({ event: 'sent', prLink: 'https://code.example.com/1' }, NOW);

    const [copy, { journal }] = [await liveWarehouse(), await agentDesk()];
    // Messages cannot be entered before their jobs.
    await agree('message', desk.journal, copy);
    expect(await readMessages(copy, null)).toEqual([]);
    const none = { stored: 0, lost: 0, unknown: 0, written: 0 };
    const jobsInCopy = { ...none, stored: 5, lost: 3, unknown: 2 };
    expect(await agree('job', desk.journal, copy)).toEqual(jobsInCopy);
    expect((await readJobs(copy, desk.project))[2]?.next_poll_at).toEqual(LATER);
    const change = (sql: string) => execute(copy, sql);
    await change("UPDATE agent_jobs SET state = 'completed', ended_at = planned_at WHERE id = 3");
    const messages = { ...none, stored: 2, lost: 1, unknown: 1 };
    expect(await agree('message', desk.journal, copy)).toEqual(messages);
    const jobs = await readJobs(copy, desk.project);
    expect(jobs.map(({ state, remote_id, pr_link }) => [state, remote_id, pr_link])).toEqual([
      ['refused', null, null],
      ['unconfirmed', null, null],
      ['active', active.remote_id, null],
      ['unconfirmed', null, null],
      ['completed', null, 'https://code.example.com/1'],
    ]);
    // They ended when the journal learned of it, and not when they were restored.
    expect(jobs.map(({ ended_at }) => ended_at)).toEqual([addMinutes(NOW, 1), null, null, null, NOW]);
    expect(jobs.map(({ next_poll_at }) => next_poll_at)).toEqual([null, null, LATER, null, null]);
    expect(jobs[3]?.note).toBe('the process ended before the reply was recorded');
    const unknown = { ...none, stored: 2, lost: 1, unknown: 1 };
    expect(await agree('job', desk.journal, desk.warehouse)).toEqual(unknown);
    const same = (job: Job) => ({ ...job, ended_at: null, next_poll_at: null });
    expect(jobs.map(same)).toEqual((await desk.jobs()).map(same));
    expect(await readMessages(copy, null)).toEqual(await desk.messages());
    // Each attempt counts toward the hourly limit, and each change begins where the one before ended.
    const changesIn = (of: Warehouse) =>
      rowsOf(
        of,
        'SELECT from_state, to_state, lag(to_state) OVER (PARTITION BY job, message ORDER BY number) AS before FROM job_transitions',
      );
    const gapsIn = async (of: Warehouse) =>
      (await changesIn(of)).filter(({ from_state, before }) => from_state !== before);
    const attemptsIn = async (of: Warehouse) =>
      (await changesIn(of)).filter(({ to_state }) => to_state === 'submitting').length;
    expect(await attemptsIn(copy)).toBe(7);
    const gap = { from_state: 'completed', to_state: 'active', before: 'active' };
    expect(await gapsIn(copy)).toEqual([gap]);

    // A process was sending when its journal was lost.
    await change("UPDATE agent_jobs SET state = 'submitting', note = NULL WHERE id = 4");
    await change("UPDATE agent_messages SET state = 'submitting', note = NULL WHERE state = 'unconfirmed'");
    const cutShort = { ...none, stored: 1, unknown: 1 };
    expect(await agree('job', journal, copy)).toEqual({ ...cutShort, written: 5 });
    expect(await agree('message', journal, copy)).toEqual({ ...cutShort, written: 2 });
    const kept = (messages: JobMessage[]) => messages.map(({ state, submitted_at }) => [state, submitted_at]);
    expect(kept(await readMessages(copy, null))).toEqual(kept(await desk.messages()));
    for (const kind of ['job', 'message'] as const) {
      const eventsIn = (of: EffectsJournal) =>
        [...of.known(kind).values()]
          .map(({ last: { ref, event, note } }) => [ref, event, kind === 'job' && note])
          .sort();
      expect(eventsIn(journal)).toEqual(eventsIn(desk.journal));
    }
    for (const of of [desk.journal, journal]) {
      expect(await agree('job', of, copy)).toEqual(none);
      expect(await agree('message', of, copy)).toEqual(none);
    }
    // A person found what the database does not know.
    for (const kind of ['job', 'message'] as const)
      for (const { last } of desk.journal.known(kind).values())
        if (last.event === 'unknown') {
          const found = { event: 'sent' } as const;
          const entry =
            last.effect === 'job' ? { ...last, ...found, remoteId: last.ref } : { ...last, ...found };
          await desk.journal.append([entry]);
        }
    expect(await agree('job', desk.journal, desk.warehouse)).toEqual({ ...none, stored: 2 });
    expect(await agree('message', desk.journal, desk.warehouse)).toEqual({ ...none, stored: 1 });
    expect((await desk.messages()).map(({ state }) => state)).toEqual(['sent', 'sent']);
    expect(await attemptsIn(desk.warehouse)).toBe(7);
    expect(await gapsIn(desk.warehouse)).toEqual([]);
    const causesOf = (of: Warehouse, job: number) =>
      valuesOf(
        of,
        `SELECT cause FROM job_transitions WHERE job = ${job} AND message IS NULL ORDER BY number`,
      );
    const restored = 'restored from the effects journal';
    expect(await causesOf(copy, 2)).toEqual([restored, restored, restored]);
    expect((await causesOf(copy, 3)).at(-1)).toBe('message 1 was sent');
    expect(await causesOf(desk.warehouse, 4)).toEqual([
      ...['flagged', restored, 'the process ended before the reply was recorded', restored],
    ]);
  });

  it('are rebuilt with the attempts that the database lacks, each once', async () => {
    const desk = await agentDesk();
    await desk.plan(1);
    desk.sandbox.setFaults([{ on: 'create', kind: 'rate-limit', times: 1 }]);
    await submitPrompts(desk.task(), 'job');
    desk.clock.advance(3600);
    const later = desk.clock.now();
    await desk.journal.depart(intentOf({ job: await desk.job(1) }), later, () => Promise.resolve());
    const [{ last } = expect.fail()] = desk.journal.known('job').values();
    const attempts = "SELECT changed_at FROM job_transitions WHERE to_state = 'submitting' ORDER BY ALL";
    // The platform may have answered that the job has ended.
    const ended = { remoteId: 'job_9', remoteStatus: 'failed' };
    for (const [event, state, note, reply] of [
      ['unknown', 'unconfirmed', 'the process ended before the reply was recorded', {}],
      ['not-sent', 'planned', null, {}],
      ['sent', 'unconfirmed', null, {}],
      ['sent', 'failed', null, ended],
    ] as const) {
      await desk.journal.append([{ ...last, event, ...reply }]);
      await reconcile(JOBS, desk.journal, desk.warehouse, later);
      expect(await desk.job(1)).toMatchObject({ state, note, submitted_at: later });
      const stored = await desk.warehouse.query(attempts, z.object({ changed_at: timestampColumn }));
      expect(stored).toEqual([{ changed_at: NOW }, { changed_at: later }]);
    }
  });
});

describe('how long a failure delays prompts', () => {
  it('429: as long as the server asks, or ten minutes', async () => {
    const { client } = await faultySandbox([
      { on: 'create', kind: 'rate-limit', seconds: 90, times: 1 },
      { on: 'create', kind: 'rate-limit', retryAfter: 'none' },
    ]);
    expect(pauseAfter(await failureAt(client))).toBe(90_000);
    expect(pauseAfter(await failureAt(client))).toBe(600_000);
  });

  it('any other: not at all', async () => {
    const { client } = await faultySandbox([{ on: 'create', kind: 'status', status: 500 }]);
    expect(pauseAfter(await failureAt(client))).toBeUndefined();
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
