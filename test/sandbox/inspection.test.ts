import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startSandbox } from './faulty-sandbox.js';
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
