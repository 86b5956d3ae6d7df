import { describe, expect, it } from 'vitest';
import { openSandbox } from './open-sandbox.js';

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
