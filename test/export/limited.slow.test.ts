import pLimit from 'p-limit';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import type { Pace } from '../../src/api/pace.js';
import { DEFAULT_RETRIES } from '../../src/api/retry.js';
import type { PageViews } from '../../src/api/schema.js';
import { READS_AT_ONCE } from '../../src/api/transport.js';
import { openPaces } from '../../src/app/platform.js';
import { bucketNameOf } from '../../src/config/load.js';
import { type ProjectSettings, settingsSchema } from '../../src/config/schema.js';
import { addDays, type Day, lastEndedDay } from '../../src/day.js';
import { readDayRecords } from '../../src/export/day-records.js';
import { planProject } from '../../src/export/plan.js';
import { resolveRange } from '../../src/export/range.js';
import type { HistoryStore } from '../../src/history/store.js';
import type { State } from '../../src/state/state.js';
import { KEY, openClient } from '../api/open-client.js';
import { closeNow, newStore } from '../open-history.js';
import { stateBeside } from '../open-state.js';
import { rowsOf, servePlatform } from '../platform.js';
import { MINUTE_MS, sleepingClock } from '../sleeping-clock.js';
import { tempDir } from '../temp-dir.js';
import { exportHistory, PROJECT, withOneMore } from './open-export.js';
import { expectWhole } from './stored-days.js';

/** Duration of a request, on the clock of the test. */
const REQUEST_MS = 200;

interface World {
  readonly days: number;
  readonly pages: number;
  /** Requests an hour, or in `limitMs`; any number by default. */
  readonly limit?: number;
  readonly limitMs?: number;
  /** Whether a refusal says how many seconds to wait. */
  readonly saysWhen?: boolean;
  readonly history?: object;
}

/** A history on a platform with a limit of its own. */
async function openWorld({ days, pages, limit, limitMs, saysWhen, history: section }: World) {
  const clock = sleepingClock();
  const firstDay = addDays(lastEndedDay(clock.now()), 1 - days);
  const served = new Map<Day, readonly PageViews[]>();
  const platform = await servePlatform({
    ...{ now: clock.now, limit, limitMs, saysWhen },
    rowsOf: (at) => {
      const rows = served.get(at) ?? (at < firstDay ? [] : rowsOf(at, pages));
      served.set(at, rows);
      return rows;
    },
  });
  const projects = [{ id: PROJECT, apiKeyEnv: 'THE_KEY' }];
  const settings = settingsSchema.parse({ baseUrl: platform.baseUrl, projects, history: section });
  const [project = expect.fail()] = settings.projects;
  const bucketOf = (one: ProjectSettings) => bucketNameOf(one, { THE_KEY: KEY });
  const path = join(await tempDir(), 'history.duckdb');

  let underWay = 0;
  const counting = (pace: Pace): Pace => ({
    mostRefusals: pace.mostRefusals,
    next: async (...given) => {
      const request = await pace.next(...given);
      underWay++;
      return request;
    },
    refused: (...given) => pace.refused(...given),
    answered: (request) => pace.answered(request),
    ended: (request) => {
      underWay--;
      pace.ended(request);
    },
  });
  /** Requests that are under way are answered before a pause is over: the platform answers at once. */
  const sleep = async (ms: number, signal?: AbortSignal) => {
    const until = clock.now().getTime() + ms;
    do await setImmediate();
    while (underWay > 0);
    await clock.sleep(Math.max(0, until - clock.now().getTime()), signal);
  };

  /** Does some work as a new process does it. */
  const inProcess = async <Result>(
    work: (stores: { history: HistoryStore; state: State }, pace: Pace) => Promise<Result>,
  ): Promise<Result> => {
    const history = await newStore(path);
    const { state, close } = await stateBeside(history);
    const given = { settings, credentials: { bucketOf }, maxWaitMs: 120_000 };
    const paces = openPaces(state, given, { now: clock.now, sleep });
    return work({ history, state }, counting(paces.of(project))).finally(async () => {
      await paces.record();
      await close();
      await closeNow(history);
    });
  };
  /** Exports what is due in a new process, and returns how it ended. */
  const exportOnce = () =>
    inProcess(async (stores, pace): Promise<PausedError | 'done'> => {
      const client = openClient(platform.baseUrl, {
        ...{ projectId: PROJECT, now: clock.now, pace, retries: { ...DEFAULT_RETRIES, minDelayMs: 1 } },
        onRequest: () => {
          clock.advance(REQUEST_MS);
        },
      });
      const common = { ...stores, client, project: PROJECT };
      try {
        const range = await resolveRange({ ...common, start: 'auto', now: clock.now() });
        if (range === undefined) throw new Error('the platform has no views');
        const task = { ...common, range, settleDays: 3, inTurn: pLimit(READS_AT_ONCE), now: clock.now };
        const { stopped } = await exportHistory(task);
        if (stopped !== undefined) throw stopped as Error;
        return 'done';
      } catch (error) {
        if (error instanceof PausedError) return error;
        throw error;
      }
    });
  return {
    ...{ clock, platform, firstDay, exportOnce },
    loadedDays: () =>
      inProcess(async (stores) => {
        const records = await readDayRecords(stores, PROJECT);
        return [...records.values()].filter((record) => record.is_stored).map(({ day }) => day);
      }),
    /** The requests that an export would need now. */
    left: () => inProcess((stores) => planProject(stores, project, settings, {}, clock.now())),
    /** Exports once an hour until everything is loaded, and returns how many runs that took. */
    untilDone: async (): Promise<number> => {
      for (let runs = 1; ; runs++) {
        if ((await exportOnce()) === 'done') return runs;
        if (runs > 100) throw new Error('too many runs');
        clock.advance(62 * MINUTE_MS);
      }
    },
    /** Adds one view to a day on the platform. */
    restate: (at: Day) => served.set(at, withOneMore(rowsOf(at, pages))),
    expectWhole: () => inProcess(({ history }) => expectWhole(history)),
    answers: (status: number) => platform.views.filter((view) => view.status === status).length,
    /** The pages of days that were answered, each as often as it was. */
    answered: () =>
      platform.views
        .filter(({ limit: rows, status }) => rows === 250 && status === 200)
        .map(({ from, offset }) => `${from} ${offset}`),
  };
}

test('a platform without a limit: a year of 300 pages is loaded in one run, as fast as it answers', async () => {
  const world = await openWorld({ days: 365, pages: 300 });
  const begun = world.clock.now();
  expect(await world.exportOnce()).toBe('done');
  expect(await world.loadedDays()).toHaveLength(365);
  const sent = world.platform.views.length;
  expect(sent).toBeLessThanOrEqual(365 * 2 + 30);
  // Nothing but requests took time.
  expect(world.clock.now().getTime() - begun.getTime()).toBe(sent * REQUEST_MS);
});

describe('a platform that answers 100 requests an hour', () => {
  test.each([true, false])(
    'is asked 100 times, and again in the next hour; saying when: %s',
    async (saysWhen) => {
      const world = await openWorld({ days: 240, pages: 3, limit: 100, saysWhen });
      const { clock, platform, answers } = world;
      const outcome = await world.exportOnce();
      expect(outcome).toMatchObject({ exitCode: 75 });
      expect(answers(200)).toBe(100);
      // Each of the connections is refused once, and again after each pause that it waits out.
      expect(answers(429)).toBeLessThanOrEqual(READS_AT_ONCE * (saysWhen ? 1 : 6));
      const loaded = await world.loadedDays();
      expect(loaded.length).toBeGreaterThan(60);
      expect(loaded.at(-1)).toBe(lastEndedDay(clock.now()));
      const { plan, requests } = await world.left();
      expect([plan?.days.length, requests]).toEqual([240 - loaded.length, 240 - loaded.length]);

      // Until the pause is over, nothing is sent.
      const sent = platform.views.length;
      if (saysWhen) {
        clock.advance(30 * MINUTE_MS);
        expect(await world.exportOnce()).toBeInstanceOf(PausedError);
        expect(platform.views).toHaveLength(sent);
      }
      clock.advance(62 * MINUTE_MS);
      await world.exportOnce();
      expect(answers(200)).toBe(200);
      clock.advance(62 * MINUTE_MS);
      expect(await world.untilDone()).toBe(1);
      expect(await world.loadedDays()).toHaveLength(240);
      expect(world.answered()).toHaveLength(new Set(world.answered()).size);
    },
  );

  test.each([
    [1, 30_000, true, 2],
    [1, 30_000, false, 2],
    [12, 5_000, true, 4],
  ])(
    'has %i days of %i paths: they are read in parts, no page twice; saying when: %s, in %i runs',
    async (days, pages, saysWhen, runs) => {
      const world = await openWorld({ days, pages, limit: 100, saysWhen });
      expect(await world.untilDone()).toBeLessThanOrEqual(runs);
      expect(await world.loadedDays()).toHaveLength(days);
      expect(world.answered()).toHaveLength((days * pages) / 250);
      expect(new Set(world.answered()).size).toBe((days * pages) / 250);
      await world.expectWhole();
    },
  );
});

test('a long day that changes between its parts is read again from the start', async () => {
  const world = await openWorld({ days: 1, pages: 10_500, limit: 40, saysWhen: true });
  const { firstDay } = world;
  expect(await world.exportOnce()).toBeInstanceOf(PausedError);
  world.restate(firstDay);
  world.clock.advance(62 * MINUTE_MS);
  await world.untilDone();
  const beginnings = world.platform.views.filter(
    ({ from, to, offset, limit, status }) =>
      from === firstDay && to === addDays(from, 1) && offset === 0 && limit > 1 && status === 200,
  );
  expect(beginnings).toHaveLength(2);
});

test.each([true, false])(
  'a platform that answers 10 a minute is loaded in one run that waits; saying when: %s',
  async (saysWhen) => {
    const world = await openWorld({ days: 60, pages: 300, limit: 10, limitMs: MINUTE_MS, saysWhen });
    const begun = world.clock.now();
    expect(await world.exportOnce()).toBe('done');
    expect(await world.loadedDays()).toHaveLength(60);
    const minutes = (world.clock.now().getTime() - begun.getTime()) / MINUTE_MS;
    expect(minutes).toBeGreaterThan(10);
    expect(minutes).toBeLessThan(30);
  },
);

test('history.requestsPerHour caps by hand, across processes, and the platform need not refuse', async () => {
  const world = await openWorld({ days: 120, pages: 3, history: { requestsPerHour: 50 } });
  for (let run = 0; run < 2; run++) {
    expect(await world.exportOnce()).toBeInstanceOf(PausedError);
    expect(world.platform.views).toHaveLength(50);
  }
  world.clock.advance(62 * MINUTE_MS);
  expect(await world.untilDone()).toBe(2);
  expect(await world.loadedDays()).toHaveLength(120);
  expect(world.platform.busiestHour()).toBe(50);
});
