import { Readable } from 'node:stream';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { SANDBOX } from '../../src/sandbox/state.js';
import { openSandbox, type OpenSandbox } from './open-sandbox.js';

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

  it('lets a read-only key export and poll, and refuses its prompts with 403', async () => {
    const { sandbox, create, viewsPath, jobPath } = await openSandbox();
    const { id } = await create();
    const headers = { Authorization: `Bearer ${SANDBOX.readOnlyKey}` };
    const get = (path: string) => fetch(sandbox.baseUrl + path, { headers });
    const post = (path: string) =>
      fetch(sandbox.baseUrl + path, { method: 'POST', headers, body: '{"prompt":"x"}' });
    for (const path of [viewsPath, `${jobPath}/${id}`]) expect((await get(path)).status).toBe(200);
    for (const path of [jobPath, `${jobPath}/${id}/message`]) expect((await post(path)).status).toBe(403);
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
});

describe('the body of a request', () => {
  const send = (to: OpenSandbox['sandbox'], path: string, body: string | Readable) => {
    const headers = { authorization: `Bearer ${to.apiKey}` };
    return request(to.baseUrl + path, { method: 'POST', headers, body });
  };
  const large = JSON.stringify({ prompt: 'x'.repeat(1024 * 1024) });

  it.each([
    ['announced', () => large],
    ['streamed', () => Readable.from(large.match(/[^]{1,65536}/g) ?? [])],
  ])('is refused with 413 past 1 MiB, %s, and nothing is done', async (_, bodyOf) => {
    const { sandbox, jobPath } = await openSandbox();
    for (const path of [jobPath, `${jobPath}/job_000001/message`]) {
      const { statusCode, body } = await send(sandbox, path, bodyOf());
      expect(statusCode).toBe(413);
      const error = 'The body is larger than 1048576 bytes. Send a shorter one.';
      expect(await body.json()).toEqual({ error });
    }
    expect(sandbox.inspect().jobs).toEqual([]);
  });
});
