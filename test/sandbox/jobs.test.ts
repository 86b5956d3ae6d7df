import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentJobSchema } from '../../src/api/schema.js';
import { clockAt, NOW, openSandbox } from './open-sandbox.js';
import { StorageError } from '../../src/errors.js';
import { tempDir } from '../temp-dir.js';

describe('agent jobs', () => {
  it('are created active with 201 and every field of the API', async () => {
    const { post, jobPath } = await openSandbox();
    const response = await post(jobPath, { prompt: 'Improve /quickstart' });
    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({
      id: 'job_000001',
      status: 'active',
      source: { repository: 'acme/docs', ref: 'main' },
      model: expect.any(String) as string,
      prLink: null,
      createdAt: NOW.toISOString(),
      archivedAt: null,
    });
  });

  it('end after some seconds, not all at once: pull request, pull request, no change, pull request, failed, archived', async () => {
    const { clock, create, job } = await openSandbox({ jobSeconds: 4 });
    const ids = [];
    for (let number = 0; number < 7; number += 1) ids.push((await create()).id);
    clock.advance(1);
    for (const id of ids) expect(await job(id)).toMatchObject({ status: 'active', prLink: null });
    clock.advance(1);
    const halfway = (await Promise.all(ids.slice(0, 3).map(job))).map(({ status }) => status);
    expect(new Set(halfway)).toEqual(new Set(['active', 'completed']));
    clock.advance(2);
    const ended = await Promise.all(ids.map(job));
    const how = ended.map(({ status, prLink, archivedAt }) => [status, prLink !== null, archivedAt !== null]);
    expect(how).toEqual([
      ['completed', true, false],
      ['completed', true, false],
      ['completed', false, false],
      ['completed', true, false],
      ['failed', false, false],
      ['archived', true, true],
      ['completed', true, false],
    ]);
    expect(ended[0]?.prLink).toBe('https://code.example.com/acme/docs/pull/101');
    expect(new Set(ended.map(({ prLink }) => prLink).filter(Boolean)).size).toBe(5);
  });

  it('that are merged improve a page once: a later merge leaves the days between as they were', async () => {
    const { sandbox, clock, create } = await openSandbox({ outcomes: ['pull-request'] });
    const prompt = 'Improve:\n"/quickstart"\n';
    for (let job = 0; job < 2; job += 1) {
      await create(prompt);
      clock.advance(10 * 24 * 3600);
    }
    expect([...sandbox.inspect().improvements]).toEqual([['/quickstart', '2026-11-21']]);
  });

  it('whose pull request comes from a late message are merged days after it: shown views stay as they were', async () => {
    const { sandbox, clock, create, post, jobPath } = await openSandbox({ outcomes: ['no-change'] });
    const { id } = await create('Improve:\n"/quickstart"\n');
    clock.advance(10 * 24 * 3600);
    await post(`${jobPath}/${id}/message`, { prompt: 'Do change it' });
    expect([...sandbox.inspect().improvements]).toEqual([['/quickstart', '2026-12-01']]);
    clock.advance(24 * 3600);
    await post(`${jobPath}/${id}/message`, { prompt: 'And the examples' });
    expect([...sandbox.inspect().improvements]).toEqual([['/quickstart', '2026-12-01']]);
  });

  it.each(['pull-request', 'no-change', 'failed', 'archived'] as const)(
    'reopen on a follow-up after %s, and end with one pull request',
    async (outcome) => {
      const { clock, create, job, post, jobPath } = await openSandbox({ outcomes: [outcome] });
      const { id } = await create();
      clock.advance(60);
      const before = await job(id);
      expect(before.status).not.toBe('active');
      const response = await post(`${jobPath}/${id}/message`, { prompt: 'Also the examples' });
      expect(response.status).toBe(200);
      const reopened = agentJobSchema.parse(await response.json());
      expect(reopened).toMatchObject({ id, status: 'active', prLink: null, archivedAt: null });
      clock.advance(60);
      const after = await job(id);
      expect(after).toMatchObject({ status: 'completed', createdAt: before.createdAt });
      expect(after.prLink).toBe('https://code.example.com/acme/docs/pull/101');
    },
  );

  it('answer 404 when unknown', async () => {
    const { get, post, jobPath } = await openSandbox();
    for (const response of [
      await get(`${jobPath}/job_000009`),
      await post(`${jobPath}/job_000009/message`, { prompt: 'x' }),
    ]) {
      expect(response.status).toBe(404);
      expect(await response.json()).toEqual({ error: expect.any(String) as string });
    }
  });

  it.each([['{"prompt":""}'], ['{}'], ['{"prompt":7}'], ['{"prompt":'], ['[]'], ['null'], ['']])(
    'refuse the body %s with 400, and store no job',
    async (body) => {
      const { sandbox, create, post, jobPath } = await openSandbox();
      const { id } = await create();
      for (const path of [jobPath, `${jobPath}/${id}/message`]) {
        const response = await post(path, body);
        expect(response.status).toBe(400);
        expect(await response.json()).toEqual({
          error: expect.any(String) as string,
          details: [{ message: expect.any(String) as string }],
        });
      }
      expect(sandbox.inspect().jobs).toMatchObject([{ id, messages: [] }]);
    },
  );

  it('accept 100 prompts in a rolling hour, creates and messages together, and then answer 429', async () => {
    const { sandbox, clock, create, post, jobPath } = await openSandbox();
    const { id } = await create();
    clock.advance(1800);
    for (let use = 2; use <= 100; use += 1) {
      const path = use % 2 === 0 ? jobPath : `${jobPath}/${id}/message`;
      expect((await post(path, { prompt: `use ${use}` })).ok).toBe(true);
    }
    for (const path of [jobPath, `${jobPath}/${id}/message`]) {
      const refused = await post(path, { prompt: 'one more' });
      expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '1800']);
      expect(await refused.json()).toEqual({ error: expect.any(String) as string });
    }
    expect(sandbox.inspect().jobs).toHaveLength(51);
    clock.advance(1800);
    expect((await post(jobPath, { prompt: 'the first use has left the hour' })).status).toBe(201);
    expect((await post(jobPath, { prompt: 'the second has not' })).status).toBe(429);
  });
});

describe('a sandbox with a state file', () => {
  it('remembers its jobs, first day and traffic between processes', async () => {
    const folder = join(await tempDir(), 'data');
    const stateFile = join(folder, 'sandbox.json');
    const clock = clockAt(NOW);
    const first = await openSandbox({ stateFile, seed: 7 }, clock);
    const { id } = await first.create();
    const week = 'dateFrom=2026-11-02&dateTo=2026-11-09';
    const before = await first.views(week);
    await first.sandbox.close();

    clock.advance(30 * 86_400);
    const second = await openSandbox({ stateFile }, clock);
    expect(second.sandbox.firstDay).toBe(first.sandbox.firstDay);
    expect(await second.views(week)).toEqual(before);
    expect(await second.job(id)).toMatchObject({ status: 'completed' });
    expect((await second.create()).id).not.toBe(id);
    expect(readdirSync(folder)).toEqual(['sandbox.json']);
  });

  it('sees jobs that another process makes meanwhile, and counts them against the same hour', async () => {
    const stateFile = join(await tempDir(), 'sandbox.json');
    const one = await openSandbox({ stateFile, usesPerHour: 2 });
    const other = await openSandbox({ stateFile, usesPerHour: 2 });
    const { id } = await one.create();
    expect((await other.job(id)).status).toBe('active');
    expect((await other.create()).id).not.toBe(id);
    expect((await one.post(one.jobPath, { prompt: 'x' })).status).toBe(429);
  });

  it('refuses a file that is not its own, and does not change it', async () => {
    const stateFile = join(await tempDir(), 'sandbox.json');
    writeFileSync(stateFile, '{"version":2}');
    const refused = openSandbox({ stateFile });
    await expect(refused).rejects.toThrow(/sandbox\.json .*Delete it to start/);
    await expect(refused).rejects.toBeInstanceOf(StorageError);
    expect(readFileSync(stateFile, 'utf8')).toBe('{"version":2}');
  });
});
