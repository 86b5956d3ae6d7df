import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { isIP } from 'node:net';
import pLimit from 'p-limit';
import type { ServeSettings } from '../config/schema.js';
import { isLoopback } from '../config/values.js';
import { ConfigurationError } from '../errors.js';
import { localHosts } from '../http-server.js';
import { ResultCache } from './history.js';

/** Who sends a request. A viewer can read and query, but change nothing. */
export interface Visitor {
  readonly isEditor: boolean;
}

export interface WebEnv {
  Bindings: HttpBindings;
  Variables: { visitor: Visitor };
}
export type WebContext = Context<WebEnv>;

/** Refuses a request with words for its sender. */
type Refuse = (c: WebContext, status: ContentfulStatusCode, words: string, login?: boolean) => Response;

/** The headers of every response that does not set its own. */
export const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // Without any, browsers would not say which site a form comes from.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

const token = (): string => randomBytes(32).toString('base64url');
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

/** Whether a path is open to everyone: it contains no data, and the sign-in page needs it. */
const isOpen = (method: string, path: string): boolean =>
  method === 'POST' ? path === '/login' : isReading(method) && /^\/app\.(?:css|js)$/.test(path);

export const isReading = (method: string): boolean => ['GET', 'HEAD'].includes(method);

/** Sign-in attempts that may wait: more could be guesses. */
const MAX_WAITING = 3;

/**
 * Decides which requests pass. Throws a `ConfigurationError` if anyone on the network could get in.
 * Its keys are new in each process, so stopping the process ends all sessions.
 */
export function openAccess(settings: ServeSettings, refuse: Refuse) {
  expectGuarded(settings);
  const { auth, header, editors, url } = settings;
  const [editorToken, viewerToken, actionToken] = [token(), token(), token()];
  const checking = pLimit(1);

  const cookieOf = (c: WebContext): string => `readership-${c.env.incoming.socket.localPort ?? 0}`;
  const letIn = (c: WebContext, value: string) => {
    const secure = url?.startsWith('https:') === true;
    setCookie(c, cookieOf(c), value, { httpOnly: true, sameSite: 'Strict', path: '/', secure });
  };

  /** Visitors by the digest of their password: a program sends it with each request. */
  const owners = new ResultCache<Visitor | undefined>(8);

  /** The visitor with this password. */
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
    // The cookie counts even if there is a header, which may be meant for a proxy in front.
    for (const given of [scheme === 'Bearer' ? credentials : '', getCookie(c, cookieOf(c)) ?? '']) {
      if (isSame(given, editorToken)) return { isEditor: true };
      if (isSame(given, viewerToken)) return { isEditor: false };
    }
    if (scheme !== 'Basic') return undefined;
    return ownerOf(Buffer.from(credentials, 'base64').toString().replace(/^.*?:/, ''));
  }

  /** Stricter than `isOwnHost`, where any IP address passes, even that of another site. */
  const isOwnOrigin = (c: WebContext): boolean => {
    const origin = c.req.header('Origin');
    // Other sites can abuse only a browser, and a browser says where a form comes from.
    if (origin === undefined)
      return c.req.header('Sec-Fetch-Site') === 'same-origin' || c.req.header('Authorization') !== undefined;
    return origin === url || (URL.canParse(origin) && new URL(origin).host === c.req.header('Host'));
  };

  const gate: MiddlewareHandler<WebEnv> = async (c, next) => {
    const address = new URL(c.req.url);
    if (!isOwnHost(c, settings))
      return refuse(
        c,
        403,
        'This address is not served here. Behind a proxy, set serve.url to the address that browsers use.',
      );
    if (!isReading(c.req.method) && !isOwnOrigin(c))
      return refuse(c, 403, 'The request came from another site. Nothing was done.');
    if (isOpen(c.req.method, address.pathname)) return next();
    const given = address.searchParams.get('token');
    if (given !== null && auth === 'link' && isSame(given, editorToken)) {
      letIn(c, editorToken);
      address.searchParams.delete('token');
      return c.redirect(pathOf(address) + address.search, 303);
    }
    const visitor = await visitorOf(c);
    if (visitor !== undefined) {
      c.set('visitor', visitor);
      return next();
    }
    // A browser that follows a link from another site withholds the cookie, but not when the page
    // reloads itself.
    if (c.req.header('Sec-Fetch-Site') === 'cross-site' && c.req.method === 'GET')
      return c.html('<!doctype html><meta http-equiv="refresh" content="0"><title>Readership</title>');
    return refuse(c, auth === 'proxy' ? 403 : 401, WHY_NOT[auth], auth === 'password');
  };

  /** Answers the form with the password. */
  const login = async (c: WebContext, password: string): Promise<Response> => {
    if (checking.pendingCount > MAX_WAITING)
      return refuse(c, 429, 'Too many sign-in attempts at once. Try again in a minute.', true);
    const owner = await ownerOf(password);
    if (owner === undefined) return refuse(c, 401, 'Wrong password.', true);
    letIn(c, owner.isEditor ? editorToken : viewerToken);
    return c.redirect('/', 303);
  };
  return {
    ...{ gate, login },
    /** The key in the link that is printed; undefined if people sign in otherwise. */
    linkToken: auth === 'link' ? editorToken : undefined,
    /** A field of every form that changes something, which no other site can know. */
    actionToken,
    isActionToken: (given: string) => isSame(given, actionToken),
  };
}

/** Throws a `ConfigurationError` if anyone on the network could get in. */
function expectGuarded({ host, auth, proxies }: ServeSettings): void {
  if (isLoopback(host) || auth === 'password') return;
  const where = `To listen on ${host}, where others can reach it,`;
  if (auth === 'link')
    throw new ConfigurationError(
      `${where} set serve.password in readership.yaml (its hash: readership serve --hash-password), or serve.auth: proxy with serve.header. See docs/serve.md.`,
    );
  if (proxies === undefined)
    throw new ConfigurationError(
      `${where} set serve.proxies in readership.yaml to the addresses of the proxy, because any other machine could claim to be any user. Or listen on 127.0.0.1. See docs/serve.md.`,
    );
}

/** The path with one slash: after two, a browser would read the name of another host. */
export const pathOf = ({ pathname }: URL): string => pathname.replace(/^\/+/, '/');

const WHY_NOT = {
  link: 'Open the link that readership serve printed when it started: it lets this browser in.',
  password: 'Sign in to see who reads the docs.',
  proxy: 'The proxy did not identify you. Sign in to it, and check serve.header in readership.yaml.',
} as const;

/**
 * Whether a request names this server. A web page whose own name is made to point here (DNS
 * rebinding) names its own host. An IP address cannot be made to point anywhere, so it passes where
 * the server listens for others.
 */
function isOwnHost(c: WebContext, { host, url }: ServeSettings): boolean {
  const name = (c.req.header('Host') ?? '').toLowerCase();
  const own = localHosts(host, c.env.incoming.socket.localPort);
  if (own.includes(name) || (url !== undefined && new URL(url).host === name)) return true;
  const { hostname } = URL.canParse(`http://${name}`) ? new URL(`http://${name}`) : { hostname: '' };
  return !isLoopback(host) && isIP(hostname.replace(/^\[|\]$/g, '')) > 0;
}

const derive = promisify<string, string, number, object, Buffer>(scrypt);
/** A sign-in takes about a tenth of a second and 32 MB. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 2 ** 26 };

/** A password as it is stored in the configuration. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16).toString('base64url');
  return `scrypt:${salt}:${(await derive(password, salt, 32, COST)).toString('base64url')}`;
}

async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, salt, expected] = hash?.split(':') ?? [];
  if (salt === undefined || expected === undefined) return false;
  return isSame((await derive(password, salt, 32, COST)).toString('base64url'), expected);
}
