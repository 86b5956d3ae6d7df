import { describe, expect, it } from 'vitest';
import { reply } from '../serve.js';
import { clientOf, errorOf, JOB, KEY, NO_ROWS, openClient, PAGE } from './open-client.js';
import { ATTEMPT } from '../attempt.js';

describe('the four operations', () => {
  it('are sent as the API documents, below the path of the base URL', async () => {
    const { server } = await clientOf((response, _, { url }) => {
      const job = url.pathname.endsWith('message') ? { ...JOB, id: 'job/1?' } : JOB;
      reply(response, 200, url.pathname.endsWith('views') ? NO_ROWS : job);
    });
    const client = openClient(`${server.baseUrl}/api`, { projectId: 'prj/1 ü' });
    await client.views({ ...PAGE, limit: 50, offset: 100 });
    await client.createJob('Improve “/a”', ATTEMPT);
    await client.sendMessage('job/1?', 'Shorter', ATTEMPT);
    await client.job('job_1');
    const prefix = 'prj%2F1%20%C3%BC';
    expect(server.seen.map(({ method, url, body }) => [method, url.pathname + url.search, body])).toEqual([
      [
        'GET',
        `/api/v1/analytics/${prefix}/views?dateFrom=2026-11-10&dateTo=2026-11-11&limit=50&offset=100`,
        '',
      ],
      ['POST', `/api/v2/agent/${prefix}/job`, '{"prompt":"Improve “/a”"}'],
      ['POST', `/api/v2/agent/${prefix}/job/job%2F1%3F/message`, '{"prompt":"Shorter"}'],
      ['GET', `/api/v2/agent/${prefix}/job/job_1`, ''],
    ]);
    for (const { headers, method } of server.seen) {
      expect(headers.authorization).toBe(`Bearer ${KEY}`);
      expect(headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined);
    }
  });

  it.each([200, 201, 202])('accept %i as success', async (status) => {
    const { client } = await clientOf((response) => reply(response, status, JOB));
    expect(await client.createJob('Improve /a', ATTEMPT)).toMatchObject(JOB);
    expect(await client.job('job_1')).toMatchObject(JOB);
  });
});

it('an empty prompt is refused, and nothing is sent', async () => {
  const { client, server } = await clientOf((response) => reply(response, 200, JOB));
  for (const send of [() => client.createJob('', ATTEMPT), () => client.sendMessage('job_1', '', ATTEMPT)])
    expect(await errorOf((async () => send())())).toBeInstanceOf(RangeError);
  expect(server.seen).toHaveLength(0);
});
