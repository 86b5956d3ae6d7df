import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { daysAgo, endedWith, env, platformWorkspace } from '../commands/workspace.js';
import { rowsOf, servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';

const READERS = Number(process.env['READERS'] ?? 20);
const EXPORTS = Number(process.env['EXPORTS'] ?? 30);
const FIRST_DAYS = 5;
const READER = fileURLToPath(new URL('reading-process.js', import.meta.url));

const found = z.object({ questions: z.int(), days: z.array(z.int()), faults: z.array(z.string()) });

/** Starts a reader of a file, and waits until it has read. It uses the processor time that exports leave. */
async function startReader(file: string, how: 'once' | 'again') {
  const child = spawn(process.execPath, [READER, file, how], { stdio: ['pipe', 'pipe', 'inherit'] });
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

it(`${EXPORTS} exports, with ${READERS} active readers and one that never closes: none fails or reads a partial state`, async () => {
  const platform = await servePlatform({ now: () => new Date(), rowsOf: (day) => rowsOf(day, 40) });
  const start = daysAgo(FIRST_DAYS + EXPORTS);
  const cwd = await platformWorkspace(platform, `history: { start: ${start} }\n`);
  const load = async (first: number, last: number) => {
    const args = ['export', '--from', daysAgo(first), '--to', daysAgo(last)];
    endedWith(0, await callCli(args, { cwd, env }));
  };
  await load(FIRST_DAYS, 1);

  const file = join(cwd, 'data', 'history.duckdb');
  const keeping = await startReader(file, 'once');
  const readers = await Promise.all(Array.from({ length: READERS }, () => startReader(file, 'again')));
  for (let ago = FIRST_DAYS + 1; ago <= FIRST_DAYS + EXPORTS; ago++) await load(ago, ago);

  const kept = await keeping.end();
  expect(kept).toMatchObject({ days: [FIRST_DAYS], faults: [] });
  for (const { days, faults } of await Promise.all(readers.map((reader) => reader.end()))) {
    expect(faults).toEqual([]);
    expect(days.at(-1)).toBe(FIRST_DAYS + EXPORTS);
    expect(days.length).toBeGreaterThan(EXPORTS / 3);
  }
}, 300_000);
