import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { z } from 'zod';
import { readWorkspace } from '../../src/app/workspace.js';
import { addDays, day, dayOf, daysIn } from '../../src/day.js';
import { logging, openLog } from '../../src/print/log.js';
import { ISO_CALENDAR, periodOf } from '../../src/reports/period.js';
import { Service } from '../../src/service/loop.js';
import { Output } from '../../src/terminal/output.js';
import { env, historyFile, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { expectWhole } from '../export/stored-days.js';
import { inHistory } from '../open-history.js';
import { randomOf } from '../reports/random.js';
import { runtimeIn } from '../run-cli.js';
import { clockAt } from '../sandbox/open-sandbox.js';
import { useSmallReports } from '../small-reports.js';

const FIRST_DAY = day('2026-01-26');
const START = new Date('2026-02-03T12:00:00Z');
/** A year by default; 9 weeks reach into daylight saving time. */
const WEEKS = Number(process.env['WEEKS'] ?? 52);
const END = new Date(START.getTime() + WEEKS * 7 * 86_400_000);
const HOUR_S = 3600;

const SETTINGS = `
history: { start: ${FIRST_DAY} }
schedule: { report: '0 3 * * 1', timezone: Europe/Zurich }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

const finalDay = z.object({ day: z.string(), checked_at: z.string() });
const FINAL_DAYS = "SELECT day, checked_at FROM days WHERE state = 'final' ORDER BY day";
const logLine = z.object({
  step: z.string().optional(),
  outcome: z.string().optional(),
  summary: z.string().optional(),
});
type LogLine = z.infer<typeof logLine>;

/** A service that is stopped, stays down and restarts at random, on a machine whose clock is sometimes wrong. */
async function setUp() {
  // A year of commits is faster on an in-memory directory, if there is one.
  if (existsSync('/dev/shm')) vi.stubEnv('TMPDIR', '/dev/shm');
  const clock = clockAt(START);
  let wrongByS = 0;
  const now = () => new Date(clock.now().getTime() + wrongByS * 1000);
  const sandbox = await serveSandbox({ now: clock.now, firstDay: FIRST_DAY, pages: 20 });
  const cwd = await useSmallReports(await workspaceOf(sandbox, SETTINGS));
  const lines: LogLine[] = [];
  let stopAtLine = Infinity;
  let stop = new AbortController();
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      const line = logLine.parse(JSON.parse(chunk.toString()));
      if (line.step !== undefined && lines.push(line) >= stopAtLine) stop.abort(new Error('told to stop'));
      done();
    },
  });
  const start = async () => {
    stop = new AbortController();
    stopAtLine = Infinity;
    const output = new Output(stream, stream, false);
    const { runtime } = runtimeIn(cwd, { environment: env, now, signal: stop.signal, output });
    const log = await openLog(output);
    const workspace = await readWorkspace({}, runtime);
    const onTickFailed = (error: unknown) => {
      log.error({ step: 'tick', outcome: String(error) });
    };
    return new Service(workspace, runtime, { ...logging(log), onTickFailed, onUnsettled: () => undefined });
  };
  return {
    ...{ clock, cwd, lines, start },
    setWrong: (seconds: number) => (wrongByS = seconds),
    /** Stops the service after this many more log lines. */
    stopAfter: (more: number) => (stopAtLine = lines.length + more),
  };
}

it(`${WEEKS} weeks with random downtime: each day final once, each week emailed once, no overlapping steps`, async () => {
  const { clock, cwd, lines, start, setWrong, stopAfter } = await setUp();
  const random = randomOf(20_251_106);
  const finalSince = new Map<string, string>();
  const expectFinalDaysKept = async () => {
    const file = join(cwd, 'data', 'history.duckdb');
    const final = await inHistory(file, (history) => history.query(FINAL_DAYS, finalDay));
    for (const { day, checked_at: at } of final) expect(finalSince.get(day) ?? at, day).toBe(at);
    for (const { day, checked_at: at } of final) finalSince.set(day, at);
  };

  let ticks = 0;
  let stops = 0;
  let service = await start();
  while (clock.now() < END) {
    const [chance, length] = [random(), random()];
    if (chance < 0.05) setWrong(Math.round((length - 0.5) * 8 * HOUR_S));
    else setWrong(0);
    const isStopped = chance > 0.75;
    // After 1 line, 4, 7, 10, 3 and so on: within each step, beginning with the export.
    if (isStopped) stopAfter(1 + ((3 * stops++) % 10));
    // Several schedules fire in the same minute.
    await Promise.all([service.tick(), service.tick(), service.tick()]);
    if (++ticks % 8 === 0) await expectFinalDaysKept();
    if (!isStopped) clock.advance(Math.round((24 + length * 96) * HOUR_S));
    else {
      clock.advance(Math.round(length * 72 * HOUR_S));
      service = await start();
    }
  }
  setWrong(0);
  await service.tick();
  // A Sunday, when the email about the week before waits for its views no longer.
  const sunday = new Date(END.getTime() + 5 * 86_400_000);
  clock.advance((sunday.getTime() - clock.now().getTime()) / 1000);
  await service.tick();
  await expectFinalDaysKept();

  const final = await inHistory(historyFile(cwd), async (history) => {
    await expectWhole(history);
    return history.query(FINAL_DAYS, finalDay);
  });
  const settled = { first: FIRST_DAY, last: addDays(dayOf(clock.now()), -4) };
  expect(final.map(({ day }) => day)).toEqual(daysIn(settled));

  const mails = (await readdir(join(cwd, 'data', 'outbox'))).map((name) => /\d{4}-W\d\d/.exec(name)?.[0]);
  const weeks = Array.from({ length: WEEKS + 1 }, (_, week) => addDays(FIRST_DAY, 7 * week));
  expect(mails.sort()).toEqual(weeks.map((week) => periodOf('week', week, ISO_CALENDAR).name));

  const outcomes = new Set(lines.map(({ step, outcome }) => `${step} ${outcome ?? 'begins'}`));
  const interrupted = WEEKS < 52 ? ['export interrupted'] : ['export interrupted', 'publish interrupted'];
  expect([...outcomes]).toEqual(expect.arrayContaining(interrupted));
  for (let index = 0; index < lines.length; index += 2) {
    expect(lines[index]?.outcome).toBeUndefined();
    expect(lines[index + 1]?.step).toBe(lines[index]?.step);
    const { outcome, summary } = lines[index + 1] ?? {};
    // A clock that is ahead over midnight keeps yesterday waiting, and nothing is sent while the clocks are far apart.
    if (outcome === 'later' && lines[index]?.step !== 'export')
      expect(summary).toContain('are more than an hour apart');
    else expect(outcome).toMatch(/^(done|interrupted|later)$/);
  }
}, 480_000);
