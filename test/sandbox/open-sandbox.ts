import { agentJobSchema, viewsResponseSchema } from '../../src/api/schema.js';
import { startSandbox } from './faulty-sandbox.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';

/** A Wednesday, five hours into the day; the default first day is Monday, May 18, 2026. */
export const NOW = new Date('2026-11-18T05:00:00Z');

/** A clock that moves only when a test advances it. */
export function clockAt(start: Date) {
  let now = start;
  return {
    now: () => now,
    advance: (seconds: number) => {
      now = new Date(now.getTime() + seconds * 1000);
    },
  };
}

export type OpenSandbox = Awaited<ReturnType<typeof openSandbox>>;

/** A sandbox with a client that uses its key and checks replies against the API's schema. */
export async function openSandbox(options: Partial<SandboxOptions> = {}, clock = clockAt(NOW)) {
  const sandbox = await startSandbox({ now: clock.now, ...options });
  const viewsPath = `/v1/analytics/${sandbox.projectId}/views`;
  const jobPath = `/v2/agent/${sandbox.projectId}/job`;
  const headers = { Authorization: `Bearer ${sandbox.apiKey}` };
  const get = (path: string) => fetch(sandbox.baseUrl + path, { headers });
  const post = (path: string, body: unknown) =>
    fetch(sandbox.baseUrl + path, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return {
    ...{ sandbox, clock, get, post, viewsPath, jobPath },
    views: async (query = '') => viewsResponseSchema.parse(await (await get(`${viewsPath}?${query}`)).json()),
    create: async (prompt = 'Improve /quickstart') =>
      agentJobSchema.parse(await (await post(jobPath, { prompt })).json()),
    job: async (id: string) => agentJobSchema.parse(await (await get(`${jobPath}/${id}`)).json()),
  };
}
