import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { isIP } from 'node:net';
import pLimit from 'p-limit';
import type { ServeSettings } from '../config/serve.js';
import { Remembering } from './history.js';

/** Who asks. A viewer may look and ask, but start nothing. */
export interface Visitor {
  readonly isEditor: boolean;
}

export interface WebEnv {
  Bindings: HttpBindings;
  Variables: { visitor: Visitor };
}
export type WebContext = Context<WebEnv>;

/** Refuses a request, with what its sender sees. */
export type Refuse = (
  c: WebContext,
  status: ContentfulStatusCode,
  words: string,
  login?: boolean,
) => Response;

/** What lets browsers in. Its keys are new in each process, so stopping it ends all sessions. */
export interface Access {
  /** Of the link that is printed; undefined where people sign in otherwise. */
  readonly linkToken: string | undefined;
  /** A field of every form that acts, which no other site can know. */
  readonly actionToken: string;
  readonly isActionToken: (given: string) => boolean;
  readonly gate: MiddlewareHandler<WebEnv>;
  /** Answers the form with the password. */
  readonly login: (c: WebContext, password: string) => Promise<Response>;
}

const token = (): string => randomBytes(32).toString('base64url');
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

/** What every visitor may ask for: it holds no data, and the page to sign in needs it. */
const isOpen = (method: string, path: string): boolean =>
  method === 'POST' ? path === '/login' : isReading(method) && /^\/app\.(?:css|js)$/.test(path);

const isReading = (method: string): boolean => ['GET', 'HEAD'].includes(method);

/** Sign-in attempts that wait for their turn, at most: more could be guesses. */
const MAX_WAITING = 3;

export function openAccess(settings: ServeSettings, refuse: Refuse): Access {
  const { auth, header, editors, host, url } = settings;
  const [editorToken, viewerToken, actionToken] = [token(), token(), token()];
  const checking = pLimit(1);

  const cookieOf = (c: WebContext): string => `readership-${c.env.incoming.socket.localPort ?? 0}`;
  const letIn = (c: WebContext, value: string) => {
    const secure = url?.startsWith('https:') === true;
    setCookie(c, cookieOf(c), value, { httpOnly: true, sameSite: 'Strict', path: '/', secure });
  };

  /** By the digest of a password that was right: a program sends it with each request. */
  const owners = new Remembering<Visitor | undefined>(8);

  /** Whoever has this password. */
  const ownerOf = (password: string): Promise<Visitor | undefined> =>
    owners.get(
      digest(password).toString('hex'),
      async () => {
        if (auth !== 'password' || checking.pendingCount > MAX_WAITING) return undefined;
        const isRight = (hash: string | undefined) => checking(() => isPassword(password, hash));
        const isEditor = await isRight(settings.password);
        return isEditor || (await isRight(settings.viewerPassword)) ? { isEditor } : undefined;
      },
      (owner) => owner !== undefined,
    );

  async function visitorOf(c: WebContext): Promise<Visitor | undefined> {
    if (auth === 'proxy') {
      const name = c.req.header(header ?? '') ?? '';
      return name === '' ? undefined : { isEditor: editors === undefined || editors.includes(name) };
    }
    const [, scheme, credentials = ''] =
      /^(Bearer|Basic) (.+)$/.exec(c.req.header('Authorization') ?? '') ?? [];
    // The cookie counts beside a header, which may be meant for a proxy in front.
    for (const given of [scheme === 'Bearer' ? credentials : '', getCookie(c, cookieOf(c)) ?? '']) {
      if (isSame(given, editorToken)) return { isEditor: true };
      if (isSame(given, viewerToken)) return { isEditor: false };
    }
    if (scheme !== 'Basic') return undefined;
    return ownerOf(Buffer.from(credentials, 'base64').toString().replace(/^.*?:/, ''));
  }

  /** Not just any name of this server: an address of digits passes as `Host`, and may be that of any other site. */
  const isOwnOrigin = (c: WebContext): boolean => {
    const origin = c.req.header('Origin');
    // Only a browser is at the mercy of other sites, and a browser says where a form comes from.
    if (origin === undefined)
      return c.req.header('Sec-Fetch-Site') === 'same-origin' || c.req.header('Authorization') !== undefined;
    return origin === url || (URL.canParse(origin) && new URL(origin).host === c.req.header('Host'));
  };

  const gate: MiddlewareHandler<WebEnv> = async (c, next) => {
    const asked = new URL(c.req.url);
    if (!isOwnHost(c.req.header('Host') ?? '', c, settings))
      return refuse(
        c,
        403,
        'This address is not served here. Behind a proxy, set serve.url to the address that browsers use.',
      );
    if (!isReading(c.req.method) && !isOwnOrigin(c))
      return refuse(c, 403, 'The request came from another site. Nothing was done.');
    if (isOpen(c.req.method, asked.pathname)) {
      await next();
      return undefined;
    }
    const given = asked.searchParams.get('token');
    if (given !== null && auth === 'link' && isSame(given, editorToken)) {
      letIn(c, editorToken);
      asked.searchParams.delete('token');
      return c.redirect(pathOf(asked) + asked.search, 303);
    }
    const visitor = await visitorOf(c);
    if (visitor !== undefined) {
      c.set('visitor', visitor);
      await next();
      return undefined;
    }
    // A browser that follows a link from another site holds back the cookie, but not when the page reloads itself.
    if (c.req.header('Sec-Fetch-Site') === 'cross-site' && c.req.method === 'GET')
      return c.html('<!doctype html><meta http-equiv="refresh" content="0"><title>Readership</title>');
    return refuse(c, auth === 'proxy' ? 403 : 401, WHY_NOT[auth], auth === 'password');
  };

  const login = async (c: WebContext, password: string): Promise<Response> => {
    if (checking.pendingCount > MAX_WAITING)
      return refuse(c, 429, 'Too many sign-in attempts at once. Try again in a minute.', true);
    const owner = await ownerOf(password);
    if (owner === undefined) return refuse(c, 401, 'Wrong password.', true);
    letIn(c, owner.isEditor ? editorToken : viewerToken);
    return c.redirect('/', 303);
  };
  // An address that others can reach is never opened by a link: see the command.
  const linkToken = auth === 'link' && isLoopback(host) ? editorToken : undefined;
  const isActionToken = (given: string) => isSame(given, actionToken);
  return { linkToken, actionToken, isActionToken, gate, login };
}

/** With one slash: after two, a browser would read the name of another host. */
export const pathOf = ({ pathname }: URL): string => pathname.replace(/^\/+/, '/');

const WHY_NOT = {
  link: 'Open the link that readership serve printed when it started: it lets this browser in.',
  password: 'Sign in to see who reads the docs.',
  proxy: 'The proxy did not say who you are. Sign in to it, and check serve.header in readership.yaml.',
} as const;

export const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(host);

export const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/**
 * Whether a name is one of this server. A web page whose own name is made to point here (DNS rebinding) names its own
 * host. An address of digits cannot be made to point anywhere, so it passes where the server listens for others.
 */
function isOwnHost(asked: string, c: WebContext, { host, url }: ServeSettings): boolean {
  const port = c.env.incoming.socket.localPort ?? 0;
  const names = ['localhost', '127.0.0.1', '[::1]', inUrl(host)].map((name) => `http://${name}:${port}`);
  const own = [...names, ...(url === undefined ? [] : [url])].map((address) => new URL(address).host);
  if (own.includes(asked.toLowerCase())) return true;
  const { hostname } = URL.canParse(`http://${asked}`) ? new URL(`http://${asked}`) : { hostname: '' };
  return !isLoopback(host) && isIP(hostname.replace(/^\[|\]$/g, '')) > 0;
}

const derive = promisify<string, string, number, object, Buffer>(scrypt);
/** As costly as signing in may be: about a tenth of a second, and 32 MB. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 2 ** 26 };

/** A password as the configuration keeps it. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16).toString('base64url');
  return `scrypt:${salt}:${(await derive(password, salt, 32, COST)).toString('base64url')}`;
}

async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, salt, expected] = hash?.split(':') ?? [];
  if (salt === undefined || expected === undefined) return false;
  return isSame((await derive(password, salt, 32, COST)).toString('base64url'), expected);
}
