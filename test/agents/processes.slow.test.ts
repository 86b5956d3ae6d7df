import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeJob, planJob } from '../../src/agents/job.js';
import { planMessage } from '../../src/agents/messages.js';
import { readJob } from '../../src/state/jobs.js';
import { readMessages } from '../../src/state/messages.js';
import { compiled } from '../compiled.js';
import { openTestState } from '../open-state.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { reply, serve, type TestServer } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { jobFor } from './reading.js';

let program: string;
let platform: TestServer;
let dataDir: string;
/** The prompts that arrived. */
let posts: string[];

beforeAll(async () => {
  program = await compiled(new URL('./sending-process.ts', import.meta.url), await tempDir());
});

/** A job that waits to be sent, and a message to one that is active. */
beforeEach(async () => {
  posts = [];
  platform = await serve(({ url, body }, response) => {
    posts.push((JSON.parse(body) as { prompt: string }).prompt);
    const [, messaged] = /\/job\/([^/]+)\/message$/.exec(url.pathname) ?? [];
    const answer = { id: messaged ?? 'job_1', status: 'active' };
    setTimeout(() => reply(response, 200, answer), 200);
  });
  const { dataDir: created, state, close } = await openTestState();
  await state.transaction(() => {
    const plan = (path: string) =>
      readJob(state, planJob(state, jobFor(path, NOW, { project: 'prj_1' }))) ?? expect.fail('no job');
    plan('/waiting');
    const sending = changeJob(state, plan('/active'), { event: 'submit', now: NOW, cause: '' });
    const remote = { id: 'job_0', status: 'active' };
    const active = changeJob(state, sending, { event: 'sent', now: NOW, cause: '', remote });
    planMessage(state, active, { origin: 'typed', prompt: 'Mention the limits', now: NOW });
  });
  dataDir = created;
  await close();
});

const KINDS = { job: 'Improve /waiting', message: 'Mention the limits' } as const;
type Kind = keyof typeof KINDS;

/** Runs a process that sends it, and may kill itself. Returns how it ended. */
async function send(kind: Kind, point = ''): Promise<unknown> {
  const child = spawn(
    process.execPath,
    [program, dataDir, kind, point, platform.baseUrl, join(dataDir, 'witness')],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  return signal ?? code;
}

const [SENT, NOTHING_TO_SEND] = [0, 3];
const arrived = (kind: Kind) => posts.filter((prompt) => prompt === KINDS[kind]).length;

async function stored(kind: Kind) {
  const { state, close } = await openTestState(dataDir);
  const found = kind === 'job' ? readJob(state, 1)?.state : readMessages(state, 'prj_1')[0]?.state;
  await close();
  return found;
}

describe.each(['job', 'message'] as const)('a process killed while it sends a %s', (kind) => {
  it.each([
    ['begun', 'unknown', 0],
    ['answered', 'unknown', 1],
    ['stored', kind === 'job' ? 'active' : 'sent', 1],
  ] as const)('%s: it is %s, and not sent again by itself', async (point, known, copies) => {
    expect(await send(kind, point)).toBe('SIGKILL');
    expect(arrived(kind)).toBe(copies);
    for (let times = 0; times < 2; times++) expect(await send(kind)).toBe(NOTHING_TO_SEND);
    expect(await stored(kind)).toBe(known);
    expect(arrived(kind)).toBe(copies);
  });

  it('and processes that all want to send it send it once', async () => {
    const ends = await Promise.all(Array.from({ length: 4 }, () => send(kind)));
    expect(ends.sort()).toEqual([SENT, NOTHING_TO_SEND, NOTHING_TO_SEND, NOTHING_TO_SEND]);
    expect(arrived(kind)).toBe(1);
    expect(await stored(kind)).toBe(kind === 'job' ? 'active' : 'sent');
  });
});
