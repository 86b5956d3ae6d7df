import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.js';
import { clockAt, NOW, openSandbox } from './open-sandbox.js';

describe('inspecting a sandbox from outside, without a key', () => {
  it('counts requests by operation and status, and lists them with path and query', async () => {
    const { sandbox, create, views, get, viewsPath } = await openSandbox();
    await create();
    await views('limit=1');
    await get(`${viewsPath}?limit=0`);
    const response = await fetch(`${sandbox.baseUrl}/_sandbox/requests`);
    expect(await response.json()).toEqual({
      counts: { create: { '201': 1 }, views: { '200': 1, '400': 1 } },
      recent: [
        { operation: 'create', method: 'POST', url: '/v2/agent/prj_sandbox/job', status: 201 },
        { operation: 'views', method: 'GET', url: `${viewsPath}?limit=1`, status: 200 },
        { operation: 'views', method: 'GET', url: `${viewsPath}?limit=0`, status: 400 },
      ],
    });
  });

  it('shows every job with its prompt and messages', async () => {
    const { sandbox, create, post, jobPath } = await openSandbox();
    const { id } = await create('Improve /quickstart');
    await post(`${jobPath}/${id}/message`, { prompt: 'And the examples' });
    const response = await fetch(`${sandbox.baseUrl}/_sandbox/jobs`);
    expect(await response.json()).toMatchObject({
      jobs: [{ id, prompt: 'Improve /quickstart', messages: [{ prompt: 'And the examples' }] }],
    });
  });

  it('sets faults, shows them and clears them', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    const url = `${sandbox.baseUrl}/_sandbox/faults`;
    const put = await fetch(url, { method: 'PUT', body: '[{"on":"views","kind":"status","status":503}]' });
    expect(put.status).toBe(200);
    expect((await get(viewsPath)).status).toBe(503);
    expect(await (await fetch(url)).json()).toEqual({
      faults: [{ on: 'views', kind: 'status', status: 503, after: 0 }],
    });
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(200);
    expect((await get(viewsPath)).status).toBe(200);
  });

  it.each([
    'not json',
    '{}',
    '[{"on":"views","kind":"earthquake"}]',
    '[{"on":"views","kind":"reset","tmies":1}]',
  ])('refuses the faults %s with 400, and keeps the active ones', async (body) => {
    const { sandbox } = await openSandbox();
    sandbox.setFaults([{ on: 'job', kind: 'html' }]);
    const url = `${sandbox.baseUrl}/_sandbox/faults`;
    expect((await fetch(url, { method: 'PUT', body })).status).toBe(400);
    expect(await (await fetch(url)).json()).toMatchObject({ faults: [{ on: 'job', kind: 'html' }] });
  });
});

describe('starting and closing', () => {
  it('fails to start on a port that is taken', async () => {
    const { sandbox } = await openSandbox();
    const port = Number(new URL(sandbox.baseUrl).port);
    await expect(startSandbox({ now: clockAt(NOW).now, port })).rejects.toThrow(/EADDRINUSE/);
  });

  it('closes promptly during a delayed request, which is not handled afterwards', async () => {
    const { sandbox, post, jobPath } = await openSandbox();
    sandbox.setFaults([{ on: 'create', kind: 'latency', delayMs: 80 }]);
    const answer = post(jobPath, { prompt: 'x' }).catch(() => 'cut off');
    await expect.poll(() => sandbox.inspect().requests.counts.create).toEqual({ none: 1 });
    await sandbox.close();
    expect(await answer).toBe('cut off');
    await delay(120);
    expect(sandbox.inspect().jobs).toHaveLength(0);
    await sandbox.close();
  });
});
