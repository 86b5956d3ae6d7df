import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { deleteCookie, getSignedCookie, setSignedCookie } from 'hono/cookie';
import { HTTPException } from 'hono/http-exception';
import { auth as basicAuth } from 'hono/utils/basic-auth';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { LRUCache } from 'lru-cache';
import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { type ServeSettings, whyOpenToAll } from '../config/serve.js';
import { ConfigurationError } from '../errors.js';
import { bodyWithin } from '../http-server.js';
import { type Frame, hrefOf } from './frame.js';
import { Turns } from './limits.js';
import { addressOf, isOwnHost, isOwnOrigin, otherHost, otherSite, proxyTest } from './origin.js';

/** Who sends a request. A viewer can read, but change nothing. */
export interface Visitor {
  readonly isEditor: boolean;
  /** Who takes turns with others: a user of the proxy, an address, or some sessions of an address. */
  readonly client: string;
}

export interface WebEnv {
  Bindings: HttpBindings;
  Variables: { visitor: Visitor };
}
export type WebContext = Context<WebEnv>;

const token = (): string => randomBytes(32).toString('base64url');
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

const isReading = (method: string): boolean => ['GET', 'HEAD'].includes(method);

/** Sign-ins of one address that wait for each other; as many as a browser or proxy sends at once. */
const SIGN_INS_WAITING = 100;
/** Of all addresses together, so that connections are left for those who are signed in. */
const ALL_SIGN_INS_WAITING = 500;
/** Sessions of one address take as many turns with others at most, or signing in often would delay them. */
const TURNS = 2;

type Rights = Pick<Visitor, 'isEditor'>;

/**
 * Decides who gets in. The constructor throws a `ConfigurationError` if anyone on the network
 * could get in. Its keys and sessions are new in each process, so a restart, which a new password
 * requires, ends all sessions.
 */
export class Access {
  /** The key in the link that is printed; undefined if people sign in otherwise. */
  readonly linkToken: string | undefined;
  /** A field of every form that changes something, which no other site can know. */
  readonly actionToken = token();
  /** Signs the cookies. Nothing is kept about a session, so signing in often ends that of nobody else. */
  readonly #key = token();
  /** Sessions that people signed out of. Any others are valid as long as the process runs. */
  readonly #ended = new LRUCache<string, true>({ max: 100_000 });
  /** Whose password is right, by its digest: a program sends it with each request. */
  readonly #owners = new Map<string, Rights>();
  /** Passwords are checked one at a time. Addresses take turns, so a flood of guesses delays only its own. */
  readonly #signIns = new Turns(1, 1, SIGN_INS_WAITING, ALL_SIGN_INS_WAITING);
  readonly #isProxy: (address: string) => boolean;

  constructor(
    private readonly settings: ServeSettings,
    private readonly fill: Frame['fill'],
    private readonly dataDir: string,
  ) {
    const why = whyOpenToAll(settings);
    if (why !== undefined) throw new ConfigurationError(why);
    this.#isProxy = proxyTest(settings);
    this.linkToken = settings.auth === 'link' ? token() : undefined;
  }

  /** Refuses a request with words for its sender. */
  async refuse(
    c: WebContext,
    status: ContentfulStatusCode,
    words: string,
    { login } = { login: false },
  ): Promise<Response> {
    // What someone typed before a restart is not lost with their session.
    const typed = c.req.method === 'POST' && status === 401 ? typedIn(await formOf(c)) : '';
    return c.html(this.fill('refused', { words, login, typed, address: wantedIn(c) }), status);
  }

  readonly gate: MiddlewareHandler<WebEnv> = async (c, next) => {
    const { method, url } = c.req;
    const address = new URL(url);
    if (!isOwnHost(c, this.settings)) return this.refuse(c, 403, otherHost(c, this.settings));
    if (!isReading(method) && !isOwnOrigin(c, this.settings)) return this.refuse(c, 403, otherSite(c));
    if (this.#isLinkToken(address.searchParams.get('token') ?? '')) {
      await this.#letIn(c, { isEditor: true });
      address.searchParams.delete('token');
      return c.redirect(hrefOf(address), 303);
    }
    const visitor = await this.#visitorOf(c);
    if (visitor !== undefined) c.set('visitor', visitor);
    else if (!isOpen(method, address.pathname)) return this.#askToSignIn(c);
    return next();
  };

  /** Answers the form with the password. Throws a `BusyError`. */
  async login(c: WebContext, password: string): Promise<Response> {
    const owner = await this.#ownerOf(c, password);
    if (owner === undefined) return this.refuse(c, 401, 'Wrong password.', { login: true });
    await this.#letIn(c, owner);
    return c.redirect(wantedIn(c), 303);
  }

  /** Ends the session of a browser. */
  logout(c: WebContext): Promise<Response> {
    this.#ended.set(deleteCookie(c, this.#cookieOf(c))?.split('.')[0] ?? '', true);
    return this.refuse(c, 200, 'You are signed out.', { login: this.settings.auth === 'password' });
  }

  readonly isActionToken = (given: string): boolean => isSame(given, this.actionToken);
  readonly #isLinkToken = (given: string): boolean =>
    this.linkToken !== undefined && isSame(given, this.linkToken);

  /** Starts a session for a browser. */
  async #letIn(c: WebContext, { isEditor }: Rights): Promise<void> {
    const session = `${token()}-${isEditor ? 'editor' : 'viewer'}`;
    const secure = this.settings.url?.startsWith('https:') === true;
    await setSignedCookie(c, this.#cookieOf(c), session, this.#key, {
      httpOnly: true,
      sameSite: 'Strict',
      secure,
    });
  }

  async #visitorOf(c: WebContext): Promise<Visitor | undefined> {
    const { auth, header = '', editors } = this.settings;
    if (auth === 'proxy') {
      // Proxies send UTF-8, but Node.js reads headers as Latin-1.
      const client = Buffer.from(c.req.header(header) ?? '', 'latin1').toString();
      return client === '' ? undefined : { client, isEditor: isListed(client, editors) };
    }
    // The cookie counts even if there is a header, which may be meant for a proxy in front.
    const session = await getSignedCookie(c, this.#key, this.#cookieOf(c));
    const address = addressOf(c, this.#isProxy);
    if (typeof session === 'string' && !this.#ended.has(session))
      return { client: `${address} ${session.charCodeAt(0) % TURNS}`, isEditor: session.endsWith('editor') };
    const [, bearer = ''] = /^Bearer (.+)$/i.exec(c.req.header('Authorization') ?? '') ?? [];
    const password = basicAuth(c.req.raw)?.password;
    const owner = this.#isLinkToken(bearer) ? { isEditor: true } : await this.#ownerOf(c, password);
    return owner && { ...owner, client: address };
  }

  /** The rights of whoever has this password. Throws a `BusyError`. */
  async #ownerOf(c: WebContext, password: string | undefined): Promise<Rights | undefined> {
    const { auth, password: ofEditors, viewerPassword } = this.settings;
    if (auth !== 'password' || password === undefined) return undefined;
    const key = digest(password).toString('hex');
    const check = async () => {
      // Requests sent at once bring the same password.
      if (this.#owners.has(key)) return this.#owners.get(key);
      const isEditor = await isPassword(password, ofEditors);
      if (!isEditor && !(await isPassword(password, viewerPassword))) return undefined;
      this.#owners.set(key, { isEditor });
      return { isEditor };
    };
    return this.#owners.get(key) ?? this.#signIns.run(addressOf(c, this.#isProxy), c.req.raw.signal, check);
  }

  /**
   * The name of the session's cookie. Browsers send a cookie to every port of a host, and in containers all servers may have
   * the same port and path, so without all three, they would sign each other out.
   */
  #cookieOf(c: WebContext): string {
    const place = `${hostname()} ${this.dataDir} ${c.env.incoming.socket.localPort}`;
    return `readership-${digest(place).toString('hex').slice(0, 12)}`;
  }

  #askToSignIn(c: WebContext): Response | Promise<Response> {
    const { auth } = this.settings;
    // A browser that follows a link from another site withholds the cookie, but not when the page
    // reloads itself.
    if (c.req.header('Sec-Fetch-Site') === 'cross-site' && c.req.method === 'GET')
      return c.html('<!doctype html><meta http-equiv="refresh" content="0"><title>Readership</title>');
    return this.refuse(c, auth === 'proxy' ? 403 : 401, WHY_NOT[auth], { login: auth === 'password' });
  }
}

/** Whether a user is among the editors; without a list, everyone is. Providers differ in the case of addresses. */
const isListed = (user: string, editors: readonly string[] | undefined): boolean =>
  editors?.some((editor) => editor.toLowerCase() === user.toLowerCase()) ?? true;

const MAX_FORM_BYTES = 256 * 1024;

/** The fields of a form. Throws an `HTTPException` (413) if it is too large. */
export async function formOf({ env }: WebContext): Promise<URLSearchParams> {
  const text = await bodyWithin(MAX_FORM_BYTES, env.incoming);
  if (text === undefined) throw new HTTPException(413, { message: 'The form is too large.' });
  // Browsers end the lines of a form with two characters.
  return new URLSearchParams(text.replaceAll(/%0D%0A/gi, '%0A'));
}

/** The address that someone asks for, which the form to sign in keeps. */
const wantedIn = ({ req }: WebContext): string =>
  hrefOf(new URL(isReading(req.method) ? req.url : `http://page/${req.query('to') ?? ''}`));

/** What a person typed in a form. */
const typedIn = (form: URLSearchParams): string =>
  ['instruction', 'text'].map((name) => form.get(name) ?? '').find((text) => text !== '') ?? '';

/** Whether a path is open to everyone: it contains no data, and the sign-in page needs it. */
const isOpen = (method: string, path: string): boolean =>
  method === 'POST' ? path === '/login' : /^\/app\.(?:css|js)$/.test(path);

const WHY_NOT = {
  link: 'Open the link that readership serve printed when it started: it lets this browser in.',
  password: 'Sign in to see who reads the docs.',
  proxy: 'The proxy did not identify you. Sign in to it, and check serve.header in readership.yaml.',
} as const;

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
