import { describe, expect, it } from 'vitest';
import { SANDBOX } from '../../src/sandbox/index.js';
import { openSandbox } from './open-sandbox.js';

describe('access', () => {
  it.each([undefined, 'Bearer wrong', 'Bearer ', `Basic ${SANDBOX.apiKey}`])(
    'refuses the key %s with 401 on every route',
    async (key) => {
      const { sandbox, viewsPath, jobPath } = await openSandbox();
      const headers: Record<string, string> = key === undefined ? {} : { Authorization: key };
      for (const [method, path] of [
        ['GET', viewsPath],
        ['GET', `${jobPath}/job_000001`],
        ['POST', jobPath],
        ['POST', `${jobPath}/job_000001/message`],
      ] as const) {
        const response = await fetch(sandbox.baseUrl + path, { method, headers });
        expect(response.status).toBe(401);
        expect(await response.json()).toEqual({ error: expect.any(String) as string });
      }
    },
  );

  it('lets a read-only key export and poll, and refuses it prompts with 403', async () => {
    const { sandbox, create, viewsPath, jobPath } = await openSandbox();
    const { id } = await create();
    const headers = { Authorization: `Bearer ${sandbox.readOnlyKey}` };
    const status = async (method: string, path: string) =>
      (
        await fetch(sandbox.baseUrl + path, {
          method,
          headers,
          ...(method === 'POST' && { body: '{"prompt":"x"}' }),
        })
      ).status;
    expect(await status('GET', viewsPath)).toBe(200);
    expect(await status('GET', `${jobPath}/${id}`)).toBe(200);
    expect(await status('POST', jobPath)).toBe(403);
    expect(await status('POST', `${jobPath}/${id}/message`)).toBe(403);
    expect(sandbox.inspect().jobs).toHaveLength(1);
  });

  it('answers an unknown project with 400', async () => {
    const { get, post } = await openSandbox();
    for (const response of [
      await get('/v1/analytics/prj_other/views'),
      await get('/v2/agent/prj_other/job/job_000001'),
      await post('/v2/agent/prj_other/job', { prompt: 'x' }),
      await post('/v2/agent/prj_other/job/job_000001/message', { prompt: 'x' }),
    ]) {
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ details: [{ message: 'unknown project: prj_other' }] });
    }
  });

  it('answers an unknown route with 404', async () => {
    const { get, jobPath } = await openSandbox();
    for (const path of ['/', '/v3/nothing', jobPath]) {
      const response = await get(path);
      expect(response.status).toBe(404);
      expect(await response.json()).toEqual({ error: expect.any(String) as string });
    }
  });

  it('answers to the keys and project it is given', async () => {
    const { get, sandbox } = await openSandbox({ apiKey: 'sandbox_mine', projectId: 'prj_mine' });
    expect(sandbox).toMatchObject({ apiKey: 'sandbox_mine', projectId: 'prj_mine' });
    expect((await get('/v1/analytics/prj_mine/views')).status).toBe(200);
  });
});
