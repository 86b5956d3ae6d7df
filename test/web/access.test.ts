import { addDays } from 'date-fns';
import { Hono } from 'hono';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { request } from 'undici';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { openHistory } from '../../src/history/history.js';
import { DEFAULT_SERVE } from '../../src/config/serve.js';
import { hashPassword, type WebEnv } from '../../src/web/access.js';
import { Turns } from '../../src/web/limits.js';
import { addressOf } from '../../src/web/origin.js';
import { emptyState } from '../../src/state/open.js';
import { Proposals } from '../../src/web/proposals.js';
import { tempDir } from '../temp-dir.js';
import { otherProcess } from '../state/other-process.js';
import { basic, NOW, PAGES, changeSite, storedSite, serveSite, type Site, workspaceIn } from './site.js';

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

const cookieIn = ({ headers }: Awaited<ReturnType<typeof ask>>) =>
  String(headers['set-cookie']).split(';', 1).join('');

/** A request as any client could send it, with the key of the link unless `headers` say otherwise. */
async function ask(
  path: string,
  headers: Record<string, string> = { authorization: `Bearer ${site.token}` },
  { method = 'GET', body = '', of = site } = {},
) {
  const sent = body === '' ? { method, headers } : { method, headers, body };
  const answer = await request(of.origin + path, sent);
  const text = (await answer.body.text()).replaceAll('&#x3D;', '=');
  return { status: answer.statusCode, headers: answer.headers, text };
}

/** Submits a form. */
const submit = (path: string, fields: Record<string, string>, headers: Record<string, string>, of = site) =>
  ask(path, headers, { method: 'POST', body: new URLSearchParams(fields).toString(), of });

const signIn = (password: string, of: Site, headers: Record<string, string> = {}) =>
  submit('/login', { password }, { origin: of.origin, ...headers }, of);

/** Whether someone may act: without the token of the form, nothing is done. */
async function expectRights(isEditor: boolean, headers: Record<string, string>, of: Site) {
  const sent = { ...headers, origin: of.origin };
  const { status } = await submit('/agents', { action: 'unskip', path: '/x' }, sent, of);
  expect(status).toBe(isEditor ? 409 : 403);
}

/** Holds back the checks of passwords until they are let go; what waits then is known. */
function holdSignIns() {
  const run = Reflect.get<Turns, 'run'>(Turns.prototype, 'run');
  const gate = new EventEmitter();
  let isOpen = false;
  let asked = 0;
  const spy = vi.spyOn(Turns.prototype, 'run').mockImplementation(async function (
    this: Turns,
    client,
    signal,
    work,
  ) {
    // Pages may be prepared at any moment; of what runs here, only passwords are checked one at a time.
    if (Reflect.get(this, 'ofOne') !== 1) return run.call(this, client, signal, work);
    const held = async () => {
      if (!isOpen) await once(gate, 'open');
      return work();
    };
    const done = run.call(this, client, signal, held);
    asked += 1;
    return done;
  });
  return {
    /** Resolves once so many wait or were refused. */
    until: (count: number) => vi.waitFor(() => expect(asked).toBe(count), 120_000),
    letGo: () => {
      spy.mockRestore();
      isOpen = true;
      gate.emit('open');
    },
  };
}

describe('access', () => {
  it('is granted by opening the link, with a cookie that scripts and other sites cannot use', async () => {
    const opened = await ask(`/pages?token=${site.token}&sort=ai`, {});
    const { status, headers } = opened;
    expect(status).toBe(303);
    expect(headers['location']).toBe('/pages?sort=ai');
    expect(headers['set-cookie']).toMatch(
      /^readership-\d+=[\w-]+-editor\.[\w%]+; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const cookie = cookieIn(opened);
    for (const method of ['GET', 'HEAD'])
      expect((await ask('/pages', { cookie }, { method })).status).toBe(200);
    const plain = await serveSite(directory, { url: 'http://readers.example.com' });
    const host = 'readers.example.com';
    const overHttp = await ask(`/?token=${plain.token}`, { host }, { of: plain });
    expect(overHttp.headers['set-cookie']).toMatch(/SameSite=Strict$/);
    const statusAt = async (port: number) =>
      (await ask('/', { host: `${host}:${port}` }, { of: plain })).status;
    expect(await Promise.all([80, 443, 8080].map(statusAt))).toEqual([401, 401, 403]);
    // Each browser has its own session, which it can end.
    expect(cookie).not.toBe(session);
    expect(cookie).not.toContain(site.token);
    const left = await ask('/logout', { cookie, origin: site.origin }, { method: 'POST' });
    expect(left.text).toContain('You are signed out');
    expect(left.headers['set-cookie']).toMatch(/^readership-\d+=; Max-Age=0/);
    expect(left.text).not.toContain('type="password"');
    expect((await ask('/pages', { cookie })).status).toBe(401);
    expect((await ask('/pages', { cookie: session })).status).toBe(200);
  });

  it('redirects to no other site, and fails for no address', async () => {
    expect((await ask(`//evil.example/?token=${site.token}`, {})).headers['location']).toBe('/evil.example/');
    expect((await ask('//[')).status).toBe(404);
    expect((await ask('/login')).headers['location']).toBe('/');
    expect((await signIn('correct horse battery', site)).status).toBe(401);
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

  it('names both hosts if a proxy loses the port', async () => {
    const { text } = await ask('/login', { origin: 'https://docs.example.com:8443' }, { method: 'POST' });
    expect(text).toContain('(https://docs.example.com:8443)');
    expect(text).toContain(new URL(site.origin).host);
  });

  it('answers only GET and HEAD for pages without actions', async () => {
    const headers = { origin: site.origin, authorization: `Bearer ${site.token}` };
    for (const method of ['POST', 'DELETE'] as const)
      expect((await ask('/pages', headers, { method })).status).toBe(405);
  });

  it('refuses a form larger than a person would write', async () => {
    const body = `password=${'x'.repeat(300_000)}`;
    const { status } = await ask('/login', { origin: site.origin }, { method: 'POST', body });
    expect(status).toBe(413);
  });

  it('requires the password if one is set; viewers have their own', async () => {
    expect(await hashPassword('correct horse battery')).not.toBe(password);
    expect(guarded.token).toBe('');
    expect((await ask('/', {}, { of: guarded })).text).toContain('type="password"');
    expect((await signIn('wrong', guarded)).status).toBe(401);
    expect((await signIn('', guarded)).headers['set-cookie']).toBeUndefined();
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
      const signedIn = await signIn(password, guarded);
      expect(signedIn.status).toBe(303);
      const cookie = cookieIn(signedIn);
      expect((await ask('/reports', { cookie }, { of: guarded })).status).toBe(200);
      // A proxy in front may require its own password.
      expect((await ask('/reports', { cookie, ...basic('of the proxy') }, { of: guarded })).status).toBe(200);
      await expectRights(password === 'correct horse battery', { cookie }, guarded);
      const out = await ask('/logout', { cookie, origin: guarded.origin }, { method: 'POST', of: guarded });
      expect(out.text).toContain('type="password"');
    }
    // However often viewers sign in, no session ends, and none becomes an editor's.
    const [editor, viewer = ''] = (
      await Promise.all([signIn('correct horse battery', guarded), signIn('just looking around', guarded)])
    ).map(cookieIn);
    for (let round = 0; round < 21; round += 1)
      await Promise.all(Array.from({ length: 50 }, () => signIn('just looking around', guarded)));
    await expectRights(true, { cookie: editor ?? '' }, guarded);
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
  ])('believes of the address of a client %s', async (_, proxied, remoteAddress, address) => {
    const hono = new Hono<WebEnv>();
    hono.get('/', (c) => c.text(addressOf(c, { ...DEFAULT_SERVE, ...proxied })));
    const headers = { 'x-forwarded-for': '10.9.9.9, 192.0.2.1' };
    const answer = await hono.request('/', { headers }, { incoming: { socket: { remoteAddress } } });
    expect(await answer.text()).toBe(address);
  });

  it('admits the right password during a flood of wrong ones, which delay only their own address', async () => {
    const url = 'https://readers.example.com';
    const of = await serveSite(directory, { auth: 'password', password, url });
    const from = (address: string) => ({ host: new URL(url).host, 'x-forwarded-for': address });
    const login = (password: string, address: string) =>
      signIn(password, of, { ...from(address), origin: url });
    const first = holdSignIns();
    const guesses = Array.from({ length: 5 }, (_, index) => login(`guess ${index}`, '192.0.2.1'));
    await first.until(5);
    const order: string[] = [];
    const right = ['192.0.2.1', '198.51.100.7'].map(async (address) => {
      const { status, headers } = await login('correct horse battery', address);
      order.push(address);
      return [status, String(headers['set-cookie']).endsWith('; Secure; SameSite=Strict')];
    });
    await first.until(7);
    first.letGo();
    expect(await Promise.all(right)).toEqual(Array(2).fill([303, true]));
    expect(order[0]).toBe('198.51.100.7');
    expect((await Promise.all(guesses)).map(({ status }) => status)).toEqual(Array(5).fill(401));
    const more = holdSignIns();
    const tooMany = Array.from({ length: 130 }, (_, index) => login(`more ${index}`, '192.0.2.1'));
    expect(await Promise.race(tooMany)).toMatchObject({ status: 429, headers: { 'retry-after': '60' } });
    // A program at that address whose password is known does not wait for them.
    const known = { ...from('192.0.2.1'), ...basic('correct horse battery') };
    expect((await ask('/reports', known, { of })).status).toBe(200);
    await more.until(130);
    const stopping = of.stop();
    more.letGo();
    await stopping;
    await Promise.allSettled(tooMany);
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
    await expectRights(true, { 'x-user': 'ann' }, viewed);
    await expectRights(true, { 'x-user': Buffer.from('jörg').toString('latin1') }, viewed);
    await expectRights(false, { 'x-user': 'bob' }, viewed);
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
    const login = (origin: string) => signIn('x', of, { origin, host: `192.0.2.7:${of.port}` });
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

it.each(['/ask', '/ask.csv', '/ask.json', '/compare', '/ai', '/mcp'])('there is no %s', async (path) => {
  const headers = { authorization: `Bearer ${site.token}`, origin: site.origin };
  for (const method of ['GET', 'POST'])
    expect(await ask(path, headers, { method })).toMatchObject({
      status: 404,
      text: expect.stringContaining('There is no such page.') as unknown,
    });
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

describe('an action', () => {
  const skip = { project: 'prj_1', action: 'skip', path: '/quickstart', days: '28' };
  const tokenIn = (text: string) => /name="token" value="([\w-]+)"/.exec(text)?.[1] ?? '';

  const act = (
    fields: Record<string, string>,
    headers: Record<string, string> = { origin: site.origin },
    of = site,
    cookie = session,
  ) => submit('/agents', fields, { cookie, ...headers }, of);

  it('is refused from another site, without its token, from a viewer, and for a form that no page contains', async () => {
    const token = tokenIn((await ask('/agents')).text);
    expect(token).toHaveLength(43);
    expect((await act({ ...skip, token }, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await act({ ...skip, token }, {})).status).toBe(403);
    expect((await act(skip)).status).toBe(409);
    expect((await act({ ...skip, token: site.token })).status).toBe(409);
    expect((await act({ ...skip, token }, { origin: site.origin }, site, 'a=b')).status).toBe(401);
    expect((await act({ ...skip, token, action: 'delete' })).status).toBe(400);
    expect((await act({ ...skip, token, days: '-1' })).status).toBe(400);
    const asViewer = { 'x-user': 'bob', origin: viewed.origin };
    const seen = (await ask('/agents', asViewer, { of: viewed })).text;
    expect(tokenIn(seen)).toBe('');
    expect((await act({ ...skip, token }, asViewer, viewed)).status).toBe(403);
    expect((await act({ ...skip, token, project: 'prj_x' })).status).toBe(404);
    // An identity provider may write the address in another case than the configuration.
    expect(tokenIn((await ask('/agents', { ...asViewer, 'x-user': 'Ann' }, { of: viewed })).text)).not.toBe(
      '',
    );
  });

  it('is carried out at once, and its page shows the result, while another process works too', async () => {
    const exporting = await otherProcess(join(directory, 'data'));
    await exporting.does('acquire', 0);
    const token = tokenIn((await ask('/agents')).text);
    /** Sends a form; the page that follows. */
    const done = async (fields: Record<string, string>) => {
      const { status, headers } = await act({ project: 'prj_1', token, ...fields });
      expect(status).toBe(303);
      return (await ask(String(headers['location']))).text;
    };
    const skipped = await done(skip);
    expect(skipped).toMatch(
      /Skip \/quickstart<\/b>: skipped until Dec 16, 2026<[^]+quickstart<\/bdi>[^]{0,99}<td>skipped manually until Dec 16, 2026[^]+value="unskip"/,
    );
    const unskipped = await done({ action: 'unskip', path: skip.path });
    expect(unskipped).toContain('it can be flagged again');
    expect(unskipped).not.toContain('value="unskip"');
    // A form that is sent twice is carried out once.
    expect(await done({ action: 'unskip', path: skip.path })).toContain('it can be flagged again');
    const note = { project: 'prj_1', action: 'note', token, path: '/guides/*' };
    expect((await act({ ...note, date: '2026-02-30', text: 'x' })).status).toBe(400);
    const noted = await done({ ...note, date: '2026-11-10', text: '<b>New</b> navigation', break: 'on' });
    expect(noted).toMatch(
      /: added to notes\.yaml<[^]+id="notes"[^]+&lt;b&gt;New&lt;\/b&gt; navigation[^]+Nov 10, 2026[^]+Counting changed/,
    );
    const attempt = /name="job" value="5"><input type="hidden" name="attempt" value="(.+?)"/.exec(
      (await ask('/agents')).text,
    )?.[1];
    const settle = { action: 'settle', job: '5', as: 'notSent', remote: '' };
    const late = await act({ ...settle, project: 'prj_1', token, attempt: '99' });
    expect(late.status).toBe(409);
    expect(late.text).toMatch(/Settle job 5[^]+sent again in the meantime/);
    expect(await done({ ...settle, attempt: attempt ?? '' })).toContain(
      ': Job 5 is planned again, and the next run that may create jobs sends it.',
    );
    /** Presses a button of the form that settles a job. */
    const settleAs = async (id: string, as: string, rest = {}) => {
      const { text } = await ask('/agents');
      const [form = '', sent = ''] =
        new RegExp(`name="job" value="${id}"><input[^>]*name="attempt" value="(.+?)">[^]+?</form>`).exec(
          text,
        ) ?? [];
      expect(form).toContain(`name="as" value="${as}"`);
      return done({ action: 'settle', job: id, attempt: sent, as, ...rest });
    };
    const firstIn = async (state: string) =>
      new RegExp(`job (\\d+), ${state},`).exec((await ask('/agents')).text)?.[1] ?? '';
    // What is recorded by mistake is settled again.
    const reviewed =
      /name="job" value="(\d+)">(?:(?!<form)[^])+?value="merged"/.exec((await ask('/agents')).text)?.[1] ??
      '';
    expect(await settleAs(reviewed, 'merged', { day: '2026-11-17' })).toContain(': Merged on Nov 17, 2026.');
    expect(await settleAs(reviewed, 'closed')).toContain(
      ': Closed without a merge. Its page gets another job only if you approve it.',
    );
    expect(await settleAs(reviewed, 'ended')).toContain(': Its pull request waits for review again.');
    // What waits is never sent, and what is over ends, each in its own stage.
    for (const [state, answer] of [
      ['planned', 'is never sent'],
      ['active', 'is over, and is no longer polled'],
    ] as const) {
      const id = await firstIn(state);
      const ended = await settleAs(id, 'ended');
      expect(ended).toContain(`: Job ${id} ${answer}`);
      expect(ended).not.toContain(`job ${id}, ${state}`);
    }
    expect(site.errors).toEqual([]);
    await exporting.does('release');
  }, 120_000);

  it('keeps what was typed when its form or its session is from before a restart', async () => {
    const passwords = ['before the restart', 'after the restart'] as const;
    const [before, after] = await Promise.all(passwords.map(hashPassword));
    const serve = (password = '', port = 0) => serveSite(directory, { auth: 'password', password, port });
    const old = await serve(before);
    const cookie = cookieIn(await signIn(passwords[0], old));
    const { text: page } = await ask('/agents', { cookie }, { of: old });
    const field = (name: string, from: string) =>
      new RegExp(`name="${name}" value="([^"]+)"`).exec(from)?.[1] ?? '';
    await old.stop();
    const of = await serve(after, old.port);
    const typed = { path: '/quickstart', digest: field('digest', page), instruction: 'Rewrite <this> part' };
    const hidden = { token: tokenIn(page), form: field('form', page) };
    const form = { project: 'prj_1', ...hidden, action: 'approve', ...typed };
    // A session ends when its password changes. What was typed is shown, and the form after signing in.
    expect((await ask('/agents', { cookie }, { of })).status).toBe(401);
    const out = await act(form, { origin: of.origin }, of, cookie);
    expect(out.status).toBe(401);
    expect(out.text).toMatch(
      /To submit it again[^]+then reload this page[^]+<textarea readonly[^>]*>Rewrite &lt;this&gt; part</,
    );
    expect(cookieIn(await signIn(passwords[0], of))).toBe('undefined');
    const again = await act(form, { origin: of.origin }, of, cookieIn(await signIn(passwords[1], of)));
    expect(again.status).toBe(409);
    expect(again.text).toMatch(
      /Approve \/quickstart[^]+<textarea name="instruction"[^>]*>Rewrite &lt;this&gt; part</,
    );
    expect(field('digest', again.text)).toBe(typed.digest);
    expect(tokenIn(again.text)).not.toBe(form.token);
    const stale = { project: 'prj_1', token: 'old' };
    const message = { action: 'message', job: '1', form: 'shown', text: 'Mention <limits>' };
    expect((await act({ ...stale, ...message })).text).toMatch(
      /name="job" value="1">\s*<textarea name="text"[^>]*>Mention &lt;limits/,
    );
  });

  it('may be about a page that is not flagged: its prompt is shown, or why it cannot get a job', async () => {
    const all = (await ask('/agents')).text;
    expect((await ask('/page?path=/quickstart')).text).toContain('href="/agents?path=%2Fquickstart"');
    const flagged = all.split('id="proposals"')[1]?.split('Next in line')[0] ?? '';
    const other = /<tr><th[^>]+><a href="\/page\?path=([^"]+)"[^]{0,200}?<td>#\d+ of /.exec(all)?.[1] ?? '';
    expect(other).not.toBe('');
    expect(flagged).not.toContain(`path=${other}"`);
    const { text } = await ask(`/agents?path=${other}`);
    expect(text.match(/<article class="card proposal"/g)).toHaveLength(1);
    expect(text).toContain(`name="path" value="${decodeURIComponent(other)}"`);
    expect((await ask('/agents?path=/nowhere')).text).toMatch(/nowhere<\/bdi> cannot get a job: fewer than/);
    // However many pages could be flagged, they are read once a day.
    const workspace = await workspaceIn(directory);
    const history = await openHistory(workspace.historyFile);
    const query = vi.spyOn(history, 'query');
    const reader = {
      query: history.query.bind(history),
      storedDays: history.storedDays.bind(history),
      state: emptyState(),
      version: '1',
    };
    const proposals = new Proposals(workspace);
    for (const project of workspace.projects)
      for (const now of [NOW, addDays(NOW, 1)])
        for (const path of ['', '/quickstart', '/nowhere']) await proposals.of(reader, project, now, path);
    expect(query.mock.calls.filter(([sql]) => sql.includes('ranked AS'))).toHaveLength(2);
    history.close();
  });
});

describe('many requests at once', () => {
  it('wait for those of the same address, in however many sessions, and delay no others', async () => {
    const signedIn = await Promise.all(
      Array.from({ length: 40 }, () => signIn('just looking around', guarded)),
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

  it('that their browser no longer waits for end, and are not logged', async () => {
    const left = new AbortController();
    const headers = { authorization: `Bearer ${site.token}` };
    const asked = request(`${site.origin}/?range=26w&against=year`, { headers, signal: left.signal });
    await setImmediate();
    left.abort();
    await expect(asked).rejects.toThrow(/abort/i);
    expect((await ask('/')).status).toBe(200);
    expect(site.errors).toEqual([]);
    // What has not begun by then never begins. Another client has as much waiting as it may.
    const turns = new Turns(1, 1, 1);
    const [gone, stay] = [new AbortController(), new AbortController().signal];
    const [abandoned, work] = [vi.fn(() => Promise.resolve()), () => setImmediate()];
    const asks = Promise.allSettled([
      ...[1, 2, 3].map(() => turns.run('stays', stay, work)),
      turns.run('leaves', gone.signal, abandoned),
    ]);
    gone.abort();
    const ends = (await asks).map(({ status }) => status);
    expect(ends).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    expect(abandoned).not.toHaveBeenCalled();
  });
});

it('a site without an address has its pages, and no links to them', async () => {
  const file = join(directory, 'readership.yaml');
  const settings = await readFile(file, 'utf8');
  await writeFile(file, settings.replace(', siteUrl: https://docs.example.com', ''));
  const bare = await serveSite(directory);
  expect(await bare.page('/page?path=/quickstart')).not.toContain('Open it on the site');
  await writeFile(file, settings);
});

it('a rendered report is shown with links to the previous and next ones, and runs only its own script', async () => {
  const folder = join(directory, 'data/reports/prj_1');
  await mkdir(folder, { recursive: true });
  const page = (week: string) =>
    `<!doctype html><title>Week ${week}</title><body><p>${week}</p><script>own()</script>\n</body>`;
  for (const week of ['44', '45', '46'])
    await writeFile(join(folder, `weekly-2026-W${week}.html`), page(week));
  await writeFile(join(folder, 'yearly-2026-W46.html'), page('46'));
  await writeFile(join(folder, 'secret.html'), 'not a report');
  expect((await ask('/reports')).text).toContain('href="/reports/prj_1/weekly-2026-W46.html"');
  const { status, headers, text } = await ask('/reports/prj_1/weekly-2026-W45.html');
  expect(status).toBe(200);
  expect(text).toMatch(
    /<body>\n<nav[^]+weekly-2026-W44\.html" rel="prev"[^]+weekly-2026-W46\.html" rel="next"/,
  );
  const hash = createHash('sha256').update('own()').digest('base64');
  expect(headers['content-security-policy']).toContain(
    `script-src 'sha256-${hash}'; img-src data:; form-action 'none'`,
  );
  for (const path of ['prj_1/secret.html', 'prj_1/..%2f..%2fhistory.duckdb', '%2e%2e/history-2026-W45.html'])
    expect((await ask(`/reports/${path}`)).status).toBe(404);
});

it('the weekly report of any week is rendered when it is asked for, and not kept', async () => {
  const folder = join(directory, 'data/reports/prj_1');
  const kept = () => readdirSync(folder, { withFileTypes: true }).map(({ name }) => name);
  await mkdir(folder, { recursive: true });
  const before = kept();
  const list = (await ask('/reports')).text;
  for (const week of ['W21', 'W36']) {
    expect(list).toContain(`href="/reports/prj_1/weekly-2026-${week}.html"`);
    const { status, headers, text } = await ask(`/reports/prj_1/weekly-2026-${week}.html`);
    expect(status).toBe(200);
    expect(text).toMatch(new RegExp(`<title>[^<]*Acme Docs[^<]*</title>`));
    expect(text).toContain(`Week ${week.slice(1)}`);
    expect(headers['content-security-policy']).toMatch(/script-src 'sha256-/);
    expect(text.includes('rel="prev"')).toBe(week === 'W36');
    expect(text).toContain('rel="next"');
  }
  expect((await ask('/reports/prj_1/weekly-2026-W46.html')).text).not.toContain('rel="next"');
  for (const [path, words] of [
    ['prj_1/weekly-2030-W01.html', 'Nothing is loaded for 2030-W01'],
    ['prj_1/weekly-2020-W01.html', 'Nothing is loaded for 2020-W01'],
    ['prj_1/weekly-2026-W54.html', 'There is no such report'],
    ['prj_1/weekly-2026-11.html', 'There is no such report'],
    ['prj_1/monthly-2026-W36.html', 'There is no such report'],
    ['prj_2/weekly-2026-W36.html', 'There is no such report'],
    ['prj%255f1/weekly-2026-W36.html', 'There is no such report'],
  ])
    expect(await ask(`/reports/${path}`), path).toMatchObject({
      status: 404,
      text: expect.stringContaining(words ?? '') as unknown,
    });
  expect(kept()).toEqual(before);
  expect(site.errors).toEqual([]);
});

describe('the history', () => {
  it('is followed when it is replaced, while pages are being read', async () => {
    const reading = Promise.all(
      Array.from({ length: 20 }, (_, index) => ask(`/pages?page=1&search=p${index}`)),
    );
    await changeSite(
      directory,
      `UPDATE page_views SET path = '/renamed', page = '/renamed' WHERE path = '/quickstart'`,
    );
    expect((await reading).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect((await ask('/pages')).text).toContain('/renamed');
  });

  it.skipIf(process.platform !== 'linux')('is prepared within a minute, before anyone asks', async () => {
    const other = await tempDir();
    await cp(directory, other, { recursive: true });
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((fd) => {
        const file = statSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false });
        return file?.ino === statSync(join(other, 'data/history.duckdb')).ino;
      });
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      // As in all these tests, there is no history yet when it starts.
      const idle = await serveSite(other);
      expect(isOpen()).toBe(false);
      await vi.advanceTimersByTimeAsync(60_000);
      await vi.waitFor(() => expect(isOpen()).toBe(true), 30_000);
      await idle.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});
