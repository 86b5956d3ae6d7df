import { Hono } from 'hono';
import { faultSchema } from '../faults/schema.js';
import type { Switchboard } from '../faults/switchboard.js';
import { badRequest, bodyOf, type SandboxEnv, unacceptable } from '../http.js';
import type { Agency } from '../jobs/agency.js';
import type { RequestLog } from '../request-log.js';

/**
 * The sandbox looked at from outside, beside the interface's paths and without a key: what was asked of it, the jobs
 * and prompts it has, and the faults in force (a JSON array of `faultSchema`, all replaced by a PUT).
 */
export function inspection(log: RequestLog, agency: Agency, switchboard: Switchboard): Hono<SandboxEnv> {
  const app = new Hono<SandboxEnv>();
  app.get('/requests', (c) => c.json(log.summary()));
  app.get('/jobs', (c) => c.json({ jobs: agency.jobs() }));
  app.get('/faults', (c) => c.json({ faults: switchboard.list() }));
  app.put('/faults', async (c) => {
    const body = await bodyOf(c);
    if (body === undefined) return badRequest(c, ['the body is not JSON']);
    const parsed = faultSchema.array().safeParse(body);
    if (!parsed.success) return unacceptable(c, parsed.error);
    switchboard.set(parsed.data);
    return c.json({ faults: switchboard.list() });
  });
  app.delete('/faults', (c) => {
    switchboard.set([]);
    return c.json({ faults: [] });
  });
  return app;
}
