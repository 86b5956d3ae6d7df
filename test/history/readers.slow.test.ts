import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { daysIn } from '../../src/day.js';
import { daysAgo, endedWith, env, historyFile, platformWorkspace } from '../commands/workspace.js';
import { rowsOf, servePlatform } from '../platform.js';
import { callCli, runCli, startCli } from '../run-cli.js';
import { mcpClient } from '../web/mcp-client.js';

const READERS = Number(process.env['READERS'] ?? 20);
const EXPORTS = Number(process.env['EXPORTS'] ?? 100);
/** More than the weekly report needs. */
const FIRST_DAYS = 14;
const PAGES = 40;
const READER = fileURLToPath(new URL('reading-process.js', import.meta.url));

/** Of one version: the days that are loaded, and whether their rows say the same. */
const QUESTION = `
  SELECT
    (SELECT count(*) FROM days)::INTEGER AS days,
    (SELECT count(DISTINCT day) FROM page_views)::INTEGER AS days_viewed,
    (SELECT sum(total) FROM days)::DOUBLE AS loaded,
    (SELECT sum(total) FROM page_views)::DOUBLE AS viewed`;

const found = z.object({ days: z.array(z.int()), faults: z.array(z.string()) });
const version = z.object({ days: z.int(), days_viewed: z.int(), loaded: z.number(), viewed: z.number() });

/** Starts another program that reads a file, and waits until it has. It uses the processor time that exports leave. */
async function startReader(file: string, how: 'once' | 'again') {
  const child = spawn(process.execPath, [READER, file, how, QUESTION], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  if (child.pid !== undefined) setPriority(child.pid, 19);
  const written = text(child.stdout);
  await once(child.stdout, 'data');
  return {
    /** Lets it query once more, and returns everything it found. */
    end: async () => {
      child.stdin.end();
      return found.parse(JSON.parse((await written).replace('reading\n', '')));
    },
  };
}

/** The views of people in the newest days, as the platform counts them. */
const humanIn = (days: number): number =>
  daysIn({ first: daysAgo(days), last: daysAgo(1) })
    .flatMap((day) => rowsOf(day, PAGES))
    .reduce((sum, { human }) => sum + human, 0);

/** What each of our own readers answers, as the number of days of the version that it read. */
async function openReaders(cwd: string): Promise<Readonly<Record<string, () => Promise<number>>>> {
  const daysOf = (answer: unknown): number => {
    const { days, days_viewed, loaded, viewed } = version.parse(answer);
    expect([days_viewed, viewed]).toEqual([days, loaded]);
    return days;
  };
  const web = startCli(['serve', '--port', '0'], { cwd, env });
  let printed = '';
  web.child.stdout.on('data', (words: string) => (printed += words));
  await web.until(/http:\S+/);
  const { href, origin } = new URL(/http:\S+/.exec(printed)?.[0] ?? expect.fail(printed));
  const link = await fetch(href, { redirect: 'manual' });
  const cookie = link.headers.get('set-cookie')?.split(';')[0] ?? '';
  const assistant = await mcpClient(cwd);
  const sums = new Map(Array.from({ length: FIRST_DAYS + EXPORTS + 1 }, (_, days) => [humanIn(days), days]));
  return {
    sql: async () => {
      const { stdout } = endedWith(0, await runCli(['sql', QUESTION, '--format', 'json'], { cwd }));
      return daysOf(z.array(z.unknown()).parse(JSON.parse(stdout))[0]);
    },
    mcp: async () => {
      const answer = await assistant.ask('query', { sql: QUESTION });
      // A notice about the data follows them.
      const [rows = ''] = answer.split('\n', 1);
      return daysOf(z.object({ rows: z.array(z.unknown()) }).parse(JSON.parse(rows)).rows[0]);
    },
    app: async () => {
      const csv = await (await fetch(`${origin}/pages.csv?range=all`, { headers: { cookie } })).text();
      const [header = '', ...rows] = csv.trim().split(/\r?\n/);
      const human = header.split(',').indexOf('human');
      const sum = rows.reduce((total, row) => total + Number(row.split(',')[human]), 0);
      return sums.get(sum) ?? expect.fail(`${sum} is the sum of no version: ${header}`);
    },
    report: async () => {
      const { stdout } = endedWith(0, await callCli(['report', 'weekly', '--format', 'json'], { cwd, env }));
      expect(JSON.parse(stdout)).toMatchObject({ report: 'weekly' });
      return 0;
    },
  };
}

it(`${EXPORTS} replacements under readers of each kind, ${READERS} other programs and one that never closes: each answer is of one version`, async () => {
  const platform = await servePlatform({ now: () => new Date(), rowsOf: (day) => rowsOf(day, PAGES) });
  const start = daysAgo(FIRST_DAYS + EXPORTS);
  const cwd = await platformWorkspace(platform, `history: { start: ${start} }\n`);
  const load = async (first: number, last: number) => {
    const args = ['export', '--from', daysAgo(first), '--to', daysAgo(last)];
    endedWith(0, await callCli(args, { cwd, env }));
  };
  await load(FIRST_DAYS, 1);

  const keeping = await startReader(historyFile(cwd), 'once');
  const others = await Promise.all(
    Array.from({ length: READERS }, () => startReader(historyFile(cwd), 'again')),
  );
  const readers = await openReaders(cwd);
  let isOver = false;
  const reading = Object.entries(readers).map(async ([name, ask]) => {
    for (let before = 0, isLast = false; !isLast;) {
      isLast = isOver;
      const days = await ask();
      expect(days, name).toBeGreaterThanOrEqual(before);
      before = days;
      if (isLast && name !== 'report') expect(days, name).toBe(FIRST_DAYS + EXPORTS);
    }
  });
  const replacing = async () => {
    for (let ago = FIRST_DAYS + 1; ago <= FIRST_DAYS + EXPORTS; ago++) await load(ago, ago);
    isOver = true;
  };
  await Promise.all([replacing(), ...reading]);

  expect(await keeping.end()).toEqual({ days: [FIRST_DAYS], faults: [] });
  for (const { days, faults } of await Promise.all(others.map((other) => other.end()))) {
    expect(faults).toEqual([]);
    expect(days.at(-1)).toBe(FIRST_DAYS + EXPORTS);
  }
}, 1_200_000);
