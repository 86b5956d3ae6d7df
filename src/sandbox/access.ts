import type { MiddlewareHandler } from 'hono';
import { badRequest, type SandboxEnv } from './http.js';

export interface AccessOptions {
  readonly apiKey: string;
  readonly readOnlyKey: string;
  readonly projectId: string;
}

const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];

/** Lets a request pass whose key may do `scope` in the project that its path names. */
export const access = (
  { apiKey, readOnlyKey, projectId }: AccessOptions,
  scope: 'read' | 'write',
): MiddlewareHandler<SandboxEnv> => {
  return async (c, next) => {
    const key = bearer(c.req.header('Authorization'));
    if (key !== apiKey && key !== readOnlyKey) return c.json({ error: 'Missing or invalid API key' }, 401);
    const asked = c.req.param('projectId') ?? '';
    if (asked !== projectId) return badRequest(c, [`unknown project: ${asked}`]);
    if (scope === 'write' && key !== apiKey) return c.json({ error: 'This API key may only read' }, 403);
    await next();
    return undefined;
  };
};

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Serves requests to this machine, or to the name the sandbox was told to listen on. A web page whose
 * name is made to point to this machine (DNS rebinding) names its own host, and is refused.
 */
export const ownHost = (name: string): MiddlewareHandler<SandboxEnv> => {
  return async (c, next) => {
    const port = c.env.incoming.socket.localPort ?? 0;
    const hosts = [...LOCAL_NAMES, name].map((local) => new URL(`http://${local}:${port}`).host);
    const asked = c.req.header('Host') ?? '';
    if (!hosts.includes(asked.toLowerCase())) {
      const error = `This sandbox does not serve the host "${asked}". Send requests to ${hosts.join(', ')}.`;
      return c.json({ error }, 403);
    }
    await next();
    return undefined;
  };
};
