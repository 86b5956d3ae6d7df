import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { daysAgo, endedWith, env, historyFile, platformWorkspace } from '../commands/workspace.js';
import { rowsOf, servePlatform } from '../platform.js';
import { callCli, runCli } from '../run-cli.js';

const READERS = Number(process.env['READERS'] ?? 20);
const EXPORTS = Number(process.env['EXPORTS'] ?? 100);
const FIRST_DAYS = 14;
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

it(`${EXPORTS} replacements under \`readership sql\`, ${READERS} other programs and one that never closes: each answer is of one version`, async () => {
  const platform = await servePlatform({ now: () => new Date(), rowsOf: (day) => rowsOf(day, 40) });
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
  let isOver = false;
  const asking = async () => {
    for (let before = 0, isLast = false; !isLast;) {
      isLast = isOver;
      const { stdout } = endedWith(0, await runCli(['sql', QUESTION, '--format', 'json'], { cwd }));
      const [answer] = z.tuple([version]).parse(JSON.parse(stdout));
      expect([answer.days_viewed, answer.viewed]).toEqual([answer.days, answer.loaded]);
      expect(answer.days).toBeGreaterThanOrEqual(before);
      before = answer.days;
    }
  };
  const replacing = async () => {
    for (let ago = FIRST_DAYS + 1; ago <= FIRST_DAYS + EXPORTS; ago++) await load(ago, ago);
    isOver = true;
  };
  await Promise.all([replacing(), asking()]);

  expect(await keeping.end()).toEqual({ days: [FIRST_DAYS], faults: [] });
  for (const { days, faults } of await Promise.all(others.map((other) => other.end()))) {
    expect(faults).toEqual([]);
    expect(days.at(-1)).toBe(FIRST_DAYS + EXPORTS);
  }
}, 1_200_000);
