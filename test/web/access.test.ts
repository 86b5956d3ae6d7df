import { Hono } from 'hono';
import { setImmediate } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_SERVE } from '../../src/config/serve.js';
import { messageOf } from '../../src/errors.js';
import { hashPassword, type WebEnv } from '../../src/web/access.js';
import { addressOf, proxyTest } from '../../src/web/origin.js';
import {
  askAt,
  basic,
  cookieIn,
  PAGES,
  serveSite,
  signInAt,
  type Site,
  storedSite,
  submitAt,
} from './site.js';

let directory: string;
let site: Site;
/** Listens on the network, behind passwords. */
let guarded: Site;
/** Behind a proxy, where only ann and jörg may act. */
let viewed: Site;
/** Of a browser that opened the link. */
let session: string;
/** The hash of the password of editors. */
let password: string;

beforeAll(async () => {
  directory = await storedSite();
  password = await hashPassword('correct horse battery');
  const viewerPassword = await hashPassword('just looking around');
  // A password that is configured but not used lets nobody in.
  site = await serveSite(directory, { password });
  guarded = await serveSite(directory, { auth: 'password', password, viewerPassword, host: '0.0.0.0' });
  viewed = await serveSite(directory, { auth: 'proxy', header: 'x-user', editors: ['ann', 'jörg'] });
  session = cookieIn(await ask(`/?token=${site.token}`, {}));
});

const ask = (
  path: string,
  headers?: Record<string, string>,
  { of = site, ...options }: { of?: Site; method?: string; body?: string } = {},
) => askAt(of, path, headers, options);

/** Whether someone may act: without the token of the form, nothing is done. */
async function expectRights(isEditor: boolean, headers: Record<string, string>, of: Site) {
  const sent = { ...headers, origin: of.origin };
  const { status } = await submitAt(of, '/agents', { action: 'unskip', path: '/x' }, sent);
  expect(status).toBe(isEditor ? 409 : 403);
}

describe('access', () => {
  it('is granted by opening the link, with a cookie that scripts and other sites cannot use', async () => {
    const opened = await ask(`/pages?token=${site.token}&sort=ai`, {});
    const { status, headers } = opened;
    expect(status).toBe(303);
    expect(headers['location']).toBe('/pages?sort=ai');
    expect(headers['set-cookie']).toMatch(
      /^readership-[0-9a-f]{12}=[\w-]+-editor\.[\w%]+; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const cookie = cookieIn(opened);
    for (const method of ['GET', 'HEAD'])
      expect((await ask('/pages', { cookie }, { method })).status).toBe(200);
    const plain = await serveSite(directory, { url: 'http://readers.example.com' });
    const host = 'readers.example.com';
    const overHttp = await ask(`/?token=${plain.token}`, { host }, { of: plain });
    expect(overHttp.headers['set-cookie']).toMatch(/SameSite=Strict$/);
    // Browsers send the cookies of all servers of a host to each of them.
    expect(cookieIn(overHttp).split('=')[0]).not.toBe(cookie.split('=')[0]);
    const statusAt = async (port: number) =>
      (await ask('/', { host: `${host}:${port}` }, { of: plain })).status;
    expect(await Promise.all([80, 443, 8080].map(statusAt))).toEqual([401, 401, 403]);
    // Each browser has its own session, which it can end.
    expect(cookie).not.toBe(session);
    expect(cookie).not.toContain(site.token);
    const left = await ask('/logout', { cookie, origin: site.origin }, { method: 'POST' });
    expect(left.text).toContain('You are signed out');
    expect(left.headers['set-cookie']).toMatch(/^readership-[0-9a-f]{12}=; Max-Age=0/);
    expect(left.text).not.toContain('type="password"');
    expect((await ask('/pages', { cookie })).status).toBe(401);
    expect((await ask('/pages', { cookie: session })).status).toBe(200);
  });

  it('redirects to no other site, and fails for no address', async () => {
    expect((await ask(`//evil.example/?token=${site.token}`, {})).headers['location']).toBe('/evil.example/');
    expect((await ask('//[')).status).toBe(404);
    expect((await ask('/login')).headers['location']).toBe('/');
    expect((await signInAt(site, 'correct horse battery')).status).toBe(401);
    const posted = await ask('/app.css', { origin: site.origin }, { method: 'POST' });
    expect(posted.status).toBe(401);
    expect(posted.text).not.toContain('Acme');
  });

  it.each([
    ...PAGES,
    '/pages.csv',
    '/reports/prj_1/weekly-2026-W46.html',
    '/nothing',
    '/login',
    '/?token=wrong',
    '/reports/app.css',
    '/app.cssx',
  ])('reveals nothing at %s without it', async (path) => {
    const { status, text } = await ask(path, {});
    expect(status).toBe(401);
    expect(text).toContain('Open the link');
    expect(text).not.toContain('type="password"');
    expect(text).not.toContain('quickstart');
    expect(text).not.toContain('Acme');
  });

  it('answers a probe for any host, and reveals only that it runs', async () => {
    expect(await ask('/healthz', { host: '10.0.0.7:8420' })).toMatchObject({ status: 200, text: 'ok\n' });
  });

  it.each(['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1:1', ''])(
    'refuses the host “%s”, whose name may point here',
    async (host) => {
      const { status, text } = await ask('/', { host, authorization: `Bearer ${site.token}` });
      expect([400, 403]).toContain(status);
      expect(text).not.toContain('quickstart');
    },
  );

  it('serves localhost by name, and on the network any IP address, but no other name', async () => {
    const { port } = new URL(site.origin);
    const headers = { host: `LocalHost:${port}`, authorization: `bearer ${site.token}` };
    expect((await ask('/', headers)).status).toBe(200);
    const statusAt = async (host: string) => (await ask('/', { host }, { of: guarded })).status;
    expect(await Promise.all(['192.0.2.7', '[2001:db8::1]:80', 'evil.example'].map(statusAt))).toEqual([
      401, 401, 403,
    ]);
  });

  it('reloads a page that another site links to, because the browser withholds its cookie', async () => {
    const crossSite = { 'sec-fetch-site': 'cross-site' };
    const { status, text } = await ask('/', crossSite);
    expect(status).toBe(200);
    expect(text).toMatch(
      /^<!doctype html><meta http-equiv="refresh" content="0"><title>Readership<\/title>$/,
    );
    const form = { ...crossSite, origin: site.origin };
    expect((await ask('/agents', form, { method: 'POST' })).status).toBe(401);
  });

  it.each([{}, { origin: 'https://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }])(
    'refuses a form from elsewhere: %o',
    async (headers) => {
      const { status, text } = await ask('/login', headers, { method: 'POST', body: 'password=x' });
      expect(status).toBe(403);
      expect(text).toContain('another site');
    },
  );

  it('takes a form from its own site if the browser may not name it, as with Referrer-Policy: no-referrer', async () => {
    const unnamed = { origin: 'null', 'sec-fetch-site': 'same-origin' };
    const send = (headers: Record<string, string>) =>
      ask('/login', headers, { method: 'POST', body: 'password=just+looking+around', of: guarded });
    expect((await send(unnamed)).status).toBe(303);
    for (const site of ['cross-site', 'same-site', 'none'])
      expect((await send({ ...unnamed, 'sec-fetch-site': site })).status).toBe(403);
  });

  it('requires the password if one is set; viewers have their own', async () => {
    expect(await hashPassword('correct horse battery')).not.toBe(password);
    expect(guarded.token).toBe('');
    expect((await ask('/', {}, { of: guarded })).text).toContain('type="password"');
    expect((await signInAt(guarded, 'wrong')).status).toBe(401);
    expect((await signInAt(guarded, '')).headers['set-cookie']).toBeUndefined();
    // The page that was asked for is kept, also after a wrong password; another site never is.
    const asked = await ask('/pages?sort=ai&search=a%26b', {}, { of: guarded });
    const formIn = ({ text }: typeof asked) => /action="([^"]+)"/.exec(text)?.[1] ?? '';
    const atForm = (password: string, form: string) =>
      ask(form, { origin: guarded.origin }, { method: 'POST', body: `password=${password}`, of: guarded });
    const again = await atForm('wrong', formIn(asked));
    for (const [form, location] of [
      [formIn(again), '/pages?sort=ai&search=a%26b'],
      ['/login?to=//evil.example/x', '/evil.example/x'],
      ['/login?to=%5C%0D%0Aevil.example', '/evil.example'],
      ['/login?to=[', '/['],
    ] as const)
      expect((await atForm('just looking around', form)).headers['location']).toBe(location);
    for (const password of ['correct horse battery', 'just looking around']) {
      const signedIn = await signInAt(guarded, password);
      expect(signedIn.status).toBe(303);
      const cookie = cookieIn(signedIn);
      expect((await ask('/reports', { cookie }, { of: guarded })).status).toBe(200);
      // A proxy in front may require its own password.
      expect((await ask('/reports', { cookie, ...basic('of the proxy') }, { of: guarded })).status).toBe(200);
      await expectRights(password === 'correct horse battery', { cookie }, guarded);
      const out = await ask('/logout', { cookie, origin: guarded.origin }, { method: 'POST', of: guarded });
      expect(out.text).toContain('type="password"');
    }
    // No session of a viewer becomes an editor's.
    const viewer = cookieIn(await signInAt(guarded, 'just looking around'));
    await expectRights(false, { cookie: viewer }, guarded);
    const forged = viewer.replace('viewer', 'editor');
    expect((await ask('/', { cookie: forged }, { of: guarded })).status).toBe(401);
    // Programs cannot fill in a form.
    for (const password of ['correct horse battery', 'just looking around'])
      await expectRights(password === 'correct horse battery', basic(password), guarded);
    expect((await ask('/pages.csv', basic('guess'), { of: guarded })).status).toBe(401);
    const sameOrigin = { 'sec-fetch-site': 'same-origin' };
    const tooLarge = 'x'.repeat(300_000);
    const large = await ask('/login', sameOrigin, { method: 'POST', body: tooLarge, of: guarded });
    expect([large.status, large.text]).toEqual([413, expect.not.stringContaining('prj_1')]);
  });

  it.each([
    ['nobody, without a proxy', {}, '127.0.0.1', '127.0.0.1'],
    ['a proxy on this machine', { url: 'https://readers.example.com' }, '127.0.0.1', '192.0.2.1'],
    ['the same over IPv6', { url: 'https://readers.example.com' }, '::1', '192.0.2.1'],
    ['the same as an IPv6 address', { url: 'https://readers.example.com' }, '::ffff:127.0.0.1', '192.0.2.1'],
    ['no other machine then', { url: 'https://readers.example.com' }, '198.51.100.7', '198.51.100.7'],
    ['a proxy elsewhere', { proxies: ['10.0.0.2'] }, '10.0.0.2', '192.0.2.1'],
    ['one of its network', { proxies: ['10.0.0.0/24', 'fd00::/8'] }, '::ffff:10.0.0.9', '192.0.2.1'],
    ['no other machine beside it', { proxies: ['10.0.0.2'] }, '10.0.0.3', '10.0.0.3'],
  ])('believes of the address of a client %s', async (_, proxied, remoteAddress, address) => {
    const hono = new Hono<WebEnv>();
    hono.get('/', (c) => c.text(addressOf(c, proxyTest({ ...DEFAULT_SERVE, ...proxied }))));
    const headers = { 'x-forwarded-for': '10.9.9.9, 192.0.2.1' };
    const answer = await hono.request('/', { headers }, { incoming: { socket: { remoteAddress } } });
    expect(await answer.text()).toBe(address);
  });

  it('trusts the header of the proxy that signs people in, and nobody without it', async () => {
    const host = 'readers.example.com';
    const behind = await serveSite(directory, { auth: 'proxy', header: 'x-user', url: `https://${host}` });
    const unsigned = await ask('/reports', { host }, { of: behind });
    expect([unsigned.status, unsigned.headers['www-authenticate']]).toEqual([403, undefined]);
    const ann = { 'x-user': 'ann@example.com' };
    expect((await ask('/reports', { host, ...ann }, { of: behind })).status).toBe(200);
    await expectRights(true, ann, behind);
    // Such a proxy may also change the host.
    const form = { ...ann, origin: `https://${host}` };
    const posted = await ask('/agents', form, { method: 'POST', body: 'action=skip', of: behind });
    expect(posted.status).not.toBe(403);
    const other = { ...form, origin: `https://${host}.evil.example` };
    expect((await ask('/agents', other, { method: 'POST', of: behind })).status).toBe(403);
    await expectRights(true, { 'x-user': 'ann' }, viewed);
    await expectRights(true, { 'x-user': Buffer.from('jörg').toString('latin1') }, viewed);
    for (const user of ['bob', 'anna']) await expectRights(false, { 'x-user': user }, viewed);
  });

  it('lets only the proxy connect, and listens nowhere else without its addresses', async () => {
    const proxy = { auth: 'proxy', header: 'x-user', host: '0.0.0.0' } as const;
    await expect(serveSite(directory, proxy)).rejects.toThrow(/set serve\.proxies/);
    await expect(serveSite(directory, { host: '0.0.0.0' })).rejects.toThrow(/set serve\.password/);
    for (const [proxies, status] of [
      [['10.0.0.0/8', '::1'], 403],
      [['127.0.0.0/8'], 200],
    ] as const) {
      const of = await serveSite(directory, { ...proxy, proxies: [...proxies] });
      expect((await ask('/reports', { 'x-user': 'ann@example.com' }, { of })).status).toBe(status);
    }
  });

  it('accepts no form from another IP address, even if requested by its own IP address', async () => {
    const of = guarded;
    const login = (origin: string) => signInAt(of, 'x', { origin, host: `192.0.2.7:${of.port}` });
    expect((await login('http://198.51.100.1')).status).toBe(403);
    expect((await login(`http://192.0.2.7:${of.port}`)).status).toBe(401);
  });

  it('sends headers that isolate its pages, and no secret in any of them', async () => {
    for (const path of [...PAGES, '/app.js', '/app.css']) {
      const { headers, text } = await ask(path);
      expect(headers['content-security-policy']).toMatch(
        /^default-src 'none'; style-src 'self'; script-src 'self'/,
      );
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['x-frame-options']).toBe('DENY');
      expect(text).not.toContain(site.token);
      expect(text).not.toContain('adm_marked-key');
      expect(text).not.toMatch(/ (?:style|on\w+)="/);
    }
  });
});

it('a program signs in with the key of the link, a password that is checked once, or by the proxy', async () => {
  for (const [of, headers, status] of [
    [site, {}, 401],
    [site, { authorization: `Bearer ${site.token}` }, 200],
    [guarded, {}, 401],
    [guarded, basic('wrong'), 401],
    [viewed, {}, 403],
    // The proxy may keep the Authorization header to itself.
    [viewed, { 'x-user': 'bob' }, 200],
  ] as const)
    expect((await ask('/pages.csv', { ...headers }, { of })).status).toBe(status);
  // A browser would ask for a password in a window of its own.
  expect((await ask('/', {}, { of: guarded })).headers['www-authenticate']).toBeUndefined();
  await expectRights(true, { authorization: `Bearer ${site.token}` }, site);
  await expectRights(true, { cookie: session }, site);
  const calls = Array.from({ length: 8 }, () =>
    ask('/pages.csv', basic('just looking around'), { of: guarded }),
  );
  expect((await Promise.all(calls)).map((call) => call.status)).toEqual(Array(8).fill(200));
});

describe('a path that visitors made up', () => {
  it('is shown as text, and links only to the site itself', async () => {
    const paths = [
      '/<script>alert(1)</script>',
      `/"onmouseover="alert(1)'`,
      'javascript:alert(1)',
      '//evil.example/',
    ];
    const pages = [
      ...PAGES,
      '/pages?sort=ai',
      `/pages?search=${encodeURIComponent('<script>alert(1)</script>')}&section=${encodeURIComponent('"><i id=x>')}`,
      ...paths.map((path) => `/page?path=${encodeURIComponent(path)}`),
    ];
    for (const page of pages) {
      const { status, text } = await ask(page);
      expect({ page, status, errors: site.errors }).toEqual({ page, status: 200, errors: [] });
      const injected = /<script>|<i |<b>The|onmouseover="alert|href="(?:javascript:|\/\/|https:\/\/evil)/;
      expect(injected.exec(text)?.[0], page).toBeUndefined();
    }
    expect(site.errors).toEqual([]);
  });

  it('is not a formula in the CSV', async () => {
    const { text, headers } = await ask('/pages.csv?range=all');
    expect(headers['content-disposition']).toBe('attachment; filename="pages-2026-05-18-2026-11-15.csv"');
    // A page begins with a slash, whatever its address begins with.
    expect(text).toContain('\n/=cmd(),');
    expect(text.split('\n').length).toBeGreaterThan(100);
    expect(text).not.toMatch(/^[=+@]/m);
  });

  it.each([
    '/../../../etc/passwd',
    '/..%2f..%2fetc/passwd',
    '/app.js/../../package.json',
    '/%00',
    '/data/history.duckdb',
  ])('opens no file: %s', async (path) => {
    const { status, text } = await ask(path);
    expect([400, 404]).toContain(status);
    expect(text).not.toMatch(/root:|"dependencies"|DUCK/);
  });
});

describe('many requests at once', () => {
  it('wait for those of the same address, in however many sessions, and delay no others', async () => {
    const signedIn = await Promise.all(
      Array.from({ length: 40 }, () => signInAt(guarded, 'just looking around')),
    );
    const asked = signedIn.flatMap((answer, index) =>
      [0, 1, 2].map((at) =>
        ask(
          `/?from=2026-09-${10 + at}&to=2026-10-${10 + (index % 20)}`,
          { cookie: cookieIn(answer) },
          { of: guarded },
        ),
      ),
    );
    const other = await ask('/reports', basic('just looking around'), { of: guarded });
    expect(other.status).toBe(200);
    const all = await Promise.all(asked);
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200, 429]));
    expect(all.find(({ status }) => status === 429)?.headers['retry-after']).toBe('60');
  });

  it('of visitors behind a proxy are counted by visitor, and who is signed in is served first', async () => {
    const of = await serveSite(directory, {
      auth: 'password',
      password: await hashPassword('of the team'),
      proxies: ['127.0.0.1'],
    });
    const at = (client: string) => ({ 'x-forwarded-for': client, origin: of.origin });
    const cookie = cookieIn(await signInAt(of, 'of the team', at('192.0.2.1')));
    // As many connections of one address as three visitors open who guess passwords.
    const proxy = new Agent({ connections: 300 });
    const left = new AbortController();
    const guesses = Array.from({ length: 270 }, (_, index) =>
      request(`${of.origin}/login`, {
        ...{ method: 'POST', dispatcher: proxy, signal: left.signal },
        headers: at(`198.51.100.${index % 3}`),
        body: 'password=guess',
      }).then(
        () => 'answered',
        (error: unknown) => (left.signal.aborted ? 'waiting' : messageOf(error)),
      ),
    );
    const first = await Promise.race(guesses);
    expect(first).toBe('answered');
    expect((await ask('/healthz', at('192.0.2.9'), { of })).status).toBe(200);
    expect((await ask('/health', { ...at('192.0.2.1'), cookie }, { of })).status).toBe(200);
    // Whoever signs in waits for one guess of each.
    expect((await signInAt(of, 'of the team', at('192.0.2.2'))).status).toBe(303);
    left.abort();
    const outcomes = await Promise.all(guesses);
    expect(new Set(outcomes)).toEqual(new Set(['answered', 'waiting']));
    await proxy.close();
  });

  it('that their browser no longer waits for end, and are not logged', async () => {
    const left = new AbortController();
    const headers = { authorization: `Bearer ${site.token}` };
    const asked = request(`${site.origin}/?range=26w&against=year`, { headers, signal: left.signal });
    await setImmediate();
    left.abort();
    await expect(asked).rejects.toThrow(/abort/i);
    expect((await ask('/')).status).toBe(200);
    expect(site.errors).toEqual([]);
  });
});
