import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { expect, it, onTestFinished, vi } from 'vitest';
import { readSitemap } from '../src/agents/sitemap.js';
import { openClient } from './api/open-client.js';
import { day } from '../src/day.js';
import { version } from '../src/files.js';
import { listen } from '../src/http-server.js';
import { connections, requestUrl } from '../src/network.js';
import { runCli } from './run-cli.js';
import { reply, serve } from './serve.js';
import { tempDir } from './temp-dir.js';

/** A proxy that sends every request to the server on `port`, and records addresses and headers. */
async function proxyTo(port: string) {
  const asked: (string | undefined)[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    asked.push(request.url);
    headers.push(request.headers);
    const target = connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const end of [socket, target]) end.on('error', () => socket.destroy());
    onTestFinished(() => void target.destroy());
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void proxy.close());
  return { address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked, headers };
}

const SITEMAP = '<urlset><url><loc>http://docs.test/a</loc></url></urlset>';
const signal = new AbortController().signal;
const clientAt = (baseUrl: string) =>
  openClient(baseUrl, { retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 } });
const QUERY = { dateFrom: day('2026-11-01'), dateTo: day('2026-11-02'), limit: 1, offset: 0 };

it('reaches the platform and a sitemap through the proxy from the environment, and sends its version', async () => {
  const server = await serve(({ url }, response) => {
    if (url.pathname === '/sitemap.xml') response.end(SITEMAP);
    else reply(response, 200, { totals: { human: 0, ai: 0, total: 0 }, views: [], hasMore: false });
  });
  const proxy = await proxyTo(new URL(server.baseUrl).port);
  vi.stubEnv('HTTP_PROXY', `http://user:pass-word@${proxy.address}`);
  const client = clientAt('http://platform.test:8080');
  expect(await client.views(QUERY)).toMatchObject({ hasMore: false });
  expect((await readSitemap('http://docs.test/sitemap.xml', signal))?.pagesOf(undefined)).toHaveLength(1);
  // Its connections are shared, and an earlier test file may have opened them without the proxy.
  vi.resetModules();
  onTestFinished(() => void vi.resetModules());
  const { requestDate } = await import('../src/api/clock.js');
  await requestDate('http://ping.test/', signal);
  expect(proxy.asked).toEqual(['platform.test:8080', 'docs.test:80', 'ping.test:80']);
  expect(proxy.headers[0]?.['proxy-authorization']).toBe(
    `Basic ${Buffer.from('user:pass-word').toString('base64')}`,
  );
  expect(server.seen.map(({ headers }) => headers['user-agent'])).toEqual(
    [1, 2, 3].map(() => `readership/${version}`),
  );
});

it('bypasses the proxy for this machine, and for what NO_PROXY names', async () => {
  const server = await serve((_, response) => reply(response, 200, {}));
  const proxy = await proxyTo(new URL(server.baseUrl).port);
  vi.stubEnv('HTTP_PROXY', `http://${proxy.address}`);
  vi.stubEnv('NO_PROXY', '.invalid');
  await (await connections().request({ origin: server.baseUrl, path: '/', method: 'GET' })).body.dump();
  await expect(
    connections().request({ origin: 'http://platform.invalid', path: '/', method: 'GET' }),
  ).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
  expect(proxy.asked).toEqual([]);
  expect(server.seen).toHaveLength(1);
});

it('names the variable of a proxy that does not answer', async () => {
  vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1');
  const client = clientAt('http://platform.test:8080');
  await expect(client.views(QUERY)).rejects.toThrow('(HTTP_PROXY set)');
});

/** A client of a server with TLS, whose certificate nobody has signed. */
async function clientOfTls(
  options: TlsOptions,
  create: (options: TlsOptions) => Server = createSecureServer,
) {
  const home = await tempDir();
  const [key, cert] = [join(home, 'key.pem'), join(home, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-days', '2', '-nodes', '-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', ...subject], { stdio: 'ignore' });
  const server = create({ key: readFileSync(key), cert: readFileSync(cert), ...options });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return clientAt(`https://localhost:${(server.address() as AddressInfo).port}`);
}

it('explains a certificate that Node.js does not trust', async () => {
  const client = await clientOfTls({});
  await expect(client.views(QUERY)).rejects.toThrow(/self-signed certificate.*NODE_EXTRA_CA_CERTS/);
});

const OLD = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
const ONE_CIPHER = { maxVersion: 'TLSv1.2', ciphers: 'NULL-SHA256:@SECLEVEL=0' } as const;

it.each<[string, TlsOptions, words: string]>([
  ['HTTP/2 only', { ALPNProtocols: ['h2'] }, 'the server speaks no HTTP/1.1, perhaps only HTTP/2'],
  ['TLS 1.1', OLD, 'the server has no TLS 1.2 or later'],
  ['an unusual cipher', ONE_CIPHER, 'the server accepts none of the usual TLS ciphers'],
])('says what is wrong with a server with %s, without lines of OpenSSL', async (_, options, words) => {
  const client = await clientOfTls(options, createTlsServer);
  await expect(client.views(QUERY)).rejects.toThrow(words);
  await expect(client.views(QUERY)).rejects.not.toThrow(/SSL routines|openssl/);
});

it('gives each address of a host longer than a distant one takes to answer', async () => {
  const look = `import{getDefaultAutoSelectFamilyAttemptTimeout as ms}from'node:net';process.on('exit',()=>console.error(ms()))`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(look)}` };
  const { code, stderr } = await runCli(['--version'], { cwd: await tempDir(), env });
  expect(code).toBe(0);
  // By default a quarter of a second; a repeated first packet comes after one.
  expect(Number(stderr)).toBeGreaterThan(1_500);
});

it('keeps the connections of a proxy longer than the proxy does', async () => {
  const { port, close } = await listen({ host: '127.0.0.1', port: 0, fetch: () => new Response('ok') });
  onTestFinished(close);
  const { headers } = await fetch(`http://127.0.0.1:${port}/`);
  const [, seconds] = /^timeout=(\d+)$/.exec(headers.get('keep-alive') ?? '') ?? [];
  expect(Number(seconds)).toBeGreaterThan(60);
});

it('reads responses to which a gateway added long headers, whoever sent them', async () => {
  const server = await serve((_, response) => {
    response.setHeader('content-security-policy', 'x'.repeat(40_000));
    response.end(SITEMAP);
  });
  const { body, headers } = await requestUrl(server.baseUrl, { signal });
  await body.dump();
  expect(headers['content-security-policy']).toHaveLength(40_000);
  expect((await readSitemap(`${server.baseUrl}/sitemap.xml`, signal))?.pagesOf(undefined)).toEqual(['/a']);
});
