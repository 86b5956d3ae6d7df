import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { request } from 'undici';
import { vi } from 'vitest';
import { readWorkspace, type Workspace } from '../../src/app/workspace.js';
import { DEFAULT_SERVE, type ServeSettings } from '../../src/config/serve.js';
import { day } from '../../src/day.js';
import { createState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { serveWeb, type Web } from '../../src/web/serve.js';
import { afterFile } from '../cleanup.js';
import { changeFilled, fillHistory } from '../filled-history.js';
import { addHostile, HOSTILE_PATHS } from '../reports/full-history.js';
import { fillSite, type TestHistory } from '../reports/history.js';
import { runtimeIn } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

export const WEB_KEY = 'adm_marked-key-0123456789';
export const NOW = new Date('2026-11-18T05:00:00Z');

/** Every page, each about something that the site has. */
export const PAGES = [
  ...['/', '/pages', '/section?section=/guides', '/page?path=/quickstart', '/agents'],
  ...['/reports', '/health'],
];

/** The header with which a program signs in. */
export const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`ann:${password}`).toString('base64')}`,
});

const open = new Set<Web>();

/** A directory with a configuration and a stored history in which anyone has visited made-up paths. */
export async function storedSite(baseUrl = 'https://platform.example.com'): Promise<string> {
  const directory = await tempDir();
  await writeFile(
    join(directory, 'readership.yaml'),
    `baseUrl: ${baseUrl}\nprojects: [{ id: prj_1, name: Acme Docs, siteUrl: https://docs.example.com }]\nimprove: { maxOpenPullRequests: 100 }\n`,
  );
  await storeFilled(directory, async (history) => {
    await fillSite(history, { first: day('2026-05-18'), last: day('2026-11-15'), pages: 100 });
    await addHostile(history, HOSTILE_PATHS, '<b>The connection was reset</b>');
    await history.run(
      `UPDATE agent_jobs SET remote_id = 'job_' || id, weeks = [] WHERE state IN ('active', 'completed', 'failed', 'archived')`,
    );
  });
  return directory;
}

/** A new history that is filled like this, and its state. */
async function storeFilled(directory: string, fill: (history: TestHistory) => Promise<void>) {
  const dataDir = join(directory, 'data');
  await mkdir(dataDir);
  (await createState(dataDir, await placeOf(dataDir, undefined))).close();
  await fillHistory(join(dataDir, 'history.duckdb'), fill);
}

/** Writes the history again, after some changes. */
export const changeSite = (directory: string, ...changes: readonly string[]): Promise<void> =>
  changeFilled(join(directory, 'data/history.duckdb'), ...changes);

/** The workspace in a directory, without secrets. */
export const workspaceIn = (directory: string): Promise<Workspace> => readWorkspace({}, runtimeOf(directory));

function runtimeOf(directory: string, { signal } = new AbortController()) {
  const environment = { PATH: process.env['PATH'], READERSHIP_API_KEY: WEB_KEY };
  return runtimeIn(directory, { environment, now: () => NOW, signal }).runtime;
}

export type Site = Awaited<ReturnType<typeof serveSite>>;

/** A port that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** The web app of a workspace, served until the tests of the file are over. */
export async function serveSite(directory: string, settings: Partial<ServeSettings> = {}) {
  const errors: string[] = [];
  const stopped = new AbortController();
  const found = await workspaceIn(directory);
  let isStarted = false;
  let reads = 0;
  const workspace = {
    ...found,
    get historyFile() {
      reads += 1;
      return isStarted ? found.historyFile : join(directory, 'none.duckdb');
    },
  };
  const runtime = runtimeOf(directory, stopped);
  // A server warms up all its pages at once and each minute, of which a test asks for a few: there is no history at first,
  // and the minutes do not pass.
  const isTimeReal = !vi.isFakeTimers();
  if (isTimeReal) vi.useFakeTimers({ toFake: ['setInterval'] });
  const web = await serveWeb({
    workspace,
    runtime,
    settings: { ...DEFAULT_SERVE, port: 0, ...settings },
    onError: (words) => errors.push(words),
  }).finally(() => {
    if (isTimeReal) vi.useRealTimers();
  });
  // Looked for, and opened.
  while (reads < 2) await setImmediate();
  isStarted = true;
  // The garbage of the other test files in this process may grow again.
  setFlagsFromString('--heap-growing-percent=0');
  open.add(web);
  afterFile(async () => {
    if (open.delete(web)) await web.close();
  });
  const token = new URL(web.address).searchParams.get('token') ?? '';
  const origin = `http://127.0.0.1:${web.port}`;
  /** A page as those see it who opened the link. */
  const page = async (path: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const { statusCode, body } = await request(origin + path, { headers });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${text.slice(0, 500)}`);
    return text;
  };
  /** Stops it as SIGTERM does. */
  const stop = () => {
    open.delete(web);
    stopped.abort();
    return web.close();
  };
  return { ...web, errors, stop, page, origin, token };
}

/** A request as any client could send it, with the key of the link unless `headers` say otherwise. */
export async function askAt(
  of: Site,
  path: string,
  headers: Record<string, string> = { authorization: `Bearer ${of.token}` },
  { method = 'GET', body = '' } = {},
) {
  const sent = body === '' ? { method, headers } : { method, headers, body };
  const answer = await request(of.origin + path, sent);
  const text = (await answer.body.text()).replaceAll('&#x3D;', '=');
  return { status: answer.statusCode, headers: answer.headers, text };
}

/** Submits a form. */
export const submitAt = (
  of: Site,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string>,
) => askAt(of, path, headers, { method: 'POST', body: new URLSearchParams(fields).toString() });

export const signInAt = (of: Site, password: string, headers: Record<string, string> = {}) =>
  submitAt(of, '/login', { password }, { origin: of.origin, ...headers });

export const cookieIn = ({ headers }: Awaited<ReturnType<typeof askAt>>) =>
  String(headers['set-cookie']).split(';', 1).join('');
