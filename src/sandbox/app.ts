import { Hono, type MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { access, type AccessOptions, ownHost } from './access.js';
import { faults, type FaultSurroundings } from './faults/apply.js';
import type { Operation } from './faults/schema.js';
import type { SandboxEnv } from './http.js';
import type { Agency } from './jobs/agency.js';
import type { RequestLog } from './request-log.js';
import { createJob, getJob, sendMessage } from './routes/agent.js';
import { inspection } from './routes/inspection.js';
import { getViews, type ViewsOptions } from './routes/views.js';

export interface AppOptions extends AccessOptions, ViewsOptions, FaultSurroundings {
  /** The name it was told to listen on, as a URL has it. */
  readonly host: string;
  readonly agency: Agency;
  readonly log: RequestLog;
}

const logged = (operation: Operation, log: RequestLog): MiddlewareHandler<SandboxEnv> => {
  return async (c, next) => {
    const { pathname, search } = new URL(c.req.url);
    const answered = log.arrived({ operation, method: c.req.method, url: pathname + search });
    await next();
    if (c.get('unanswered') !== true) answered(c.res.status);
  };
};

/** The whole interface, and the inspection beside it, as one HTTP application. */
export function createApp(options: AppOptions): Hono<SandboxEnv> {
  const { agency, log, switchboard } = options;
  // Faults strike before the key is looked at: a proxy in the way does not know keys either.
  const guards = (operation: Operation, scope: 'read' | 'write') =>
    [logged(operation, log), faults(operation, options), access(options, scope)] as const;

  const app = new Hono<SandboxEnv>();
  app.use(ownHost(options.host));
  const jobs = '/v2/agent/:projectId/job';
  app.post(jobs, ...guards('create', 'write'), createJob(agency));
  app.post(`${jobs}/:id/message`, ...guards('message', 'write'), sendMessage(agency));
  app.get(`${jobs}/:id`, ...guards('job', 'read'), getJob(agency));
  app.get('/v1/analytics/:projectId/views', ...guards('views', 'read'), getViews(options));
  app.route('/_sandbox', inspection(log, agency, switchboard));

  app.notFound((c) => c.json({ error: `No such route: ${c.req.method} ${c.req.path}` }, 404));
  app.onError((error, c) =>
    error instanceof HTTPException
      ? error.getResponse()
      : c.json({ error: `The sandbox failed: ${error.message}` }, 500),
  );
  return app;
}
