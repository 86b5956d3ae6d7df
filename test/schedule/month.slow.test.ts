import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { loggedTick, openService } from '../../src/commands/start.js';
import { addDays, day, dayOf, daysIn } from '../../src/day.js';
import { neverOverlapping } from '../../src/schedule/service.js';
import { Output } from '../../src/terminal/output.js';
import { KEY, liveFile, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { expectWhole } from '../history/stored-days.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { clockAt } from '../sandbox/open-sandbox.js';

const FIRST_DAY = day('2026-10-05');
const END = new Date('2026-11-12T12:00:00Z');
const HOUR_S = 3600;

const SETTINGS = `
history: { start: ${FIRST_DAY} }
schedule: { report: '0 3 * * *', timezone: Europe/Zurich }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

/** Numbers from 0 to 1, the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const finalDay = z.object({ day: z.string(), attempted_at: z.string() });
const logLine = z.object({ step: z.string().optional(), outcome: z.string().optional() });

it('a month with random downtime: each day final once, each week mailed once, no step beside another', async () => {
  const clock = clockAt(new Date('2026-10-13T12:00:00Z'));
  const sandbox = await serveSandbox({ now: clock.now, firstDay: FIRST_DAY });
  const cwd = await workspaceOf(sandbox, SETTINGS);
  let written = '';
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      written += chunk.toString();
      done();
    },
  });
  const runtime = {
    ...{ workingDirectory: cwd, environment: { READERSHIP_API_KEY: KEY }, now: clock.now },
    ...{ signal: new AbortController().signal, output: new Output(stream, stream, false) },
  };
  const opened = await openService({}, runtime);
  const service = neverOverlapping(() => loggedTick(opened, runtime));
  const random = randomFrom(20_261_005);
  const finalSince = new Map<string, string>();
  while (clock.now() < END) {
    // Both schedules tick in the same minute.
    await Promise.all([service.run(), service.run()]);
    const warehouse = await liveWarehouse(liveFile(cwd));
    const final = await warehouse.query("FROM day_loads WHERE state = 'final'", finalDay);
    await closeNow(warehouse);
    for (const { day, attempted_at: at } of final) expect(finalSince.get(day) ?? at, day).toBe(at);
    for (const { day, attempted_at: at } of final) finalSince.set(day, at);
    const isDown = random() < 0.2;
    clock.advance(Math.round((isDown ? 12 + random() * 60 : 8 + random() * 14) * HOUR_S));
  }
  clock.advance(24 * HOUR_S);
  await service.run();

  const warehouse = await liveWarehouse(liveFile(cwd));
  await expectWhole(warehouse);
  const final = await warehouse.query("FROM day_loads WHERE state = 'final' ORDER BY day", finalDay);
  await closeNow(warehouse);
  const settled = { first: FIRST_DAY, last: addDays(dayOf(clock.now()), -4) };
  expect(final.map(({ day }) => day)).toEqual(daysIn(settled));

  const mails = (await readdir(join(cwd, 'data', 'outbox'))).map((name) => /2026-W\d\d/.exec(name)?.[0]);
  expect(mails.sort()).toEqual(['2026-W41', '2026-W42', '2026-W43', '2026-W44', '2026-W45']);

  const steps = written
    .split('\n')
    .filter(Boolean)
    .map((line) => logLine.parse(JSON.parse(line)))
    .filter(({ step }) => step !== undefined);
  expect(steps.length).toBeGreaterThan(80);
  for (let index = 0; index < steps.length; index += 2) {
    expect(steps[index]?.outcome).toBeUndefined();
    expect(steps[index + 1]).toEqual({ step: steps[index]?.step, outcome: 'done' });
  }
}, 120_000);
