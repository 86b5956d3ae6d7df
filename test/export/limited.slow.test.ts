import pLimit from 'p-limit';
import { describe, expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { READS_AT_ONCE } from '../../src/api/transport.js';
import { addDays, lastEndedDay } from '../../src/day.js';
import { readDayRecords } from '../../src/export/day-records.js';
import { planProject } from '../../src/export/plan.js';
import { resolveRange } from '../../src/export/range.js';
import { MINUTE_MS } from '../sleeping-clock.js';
import { exportHistory, PROJECT } from './open-export.js';
import { limitedSite, type LimitedSiteOptions } from './limited-site.js';
import { expectWhole } from './stored-days.js';

const REQUEST_MS = 200;

type World = Awaited<ReturnType<typeof openWorld>>;

/** A history on a platform with a limit of its own. */
async function openWorld(options: Omit<LimitedSiteOptions, 'requestMs'>) {
  const site = await limitedSite({ ...options, requestMs: REQUEST_MS });
  const { clock, settings, inProcess } = site;
  const [project = expect.fail()] = settings.projects;
  /** Exports what is due in a new process, and returns how it ended. */
  const exportOnce = (): Promise<PausedError | 'done'> =>
    inProcess(async ({ history, state, clientOf }) => {
      const common = { history, state, client: clientOf(project), project: PROJECT };
      try {
        const range =
          (await resolveRange({ ...common, start: 'auto', now: clock.now() })) ??
          expect.fail('the platform has views');
        const task = { ...common, range, settleDays: 3, inTurn: pLimit(READS_AT_ONCE), now: clock.now };
        const { stopped } = await exportHistory(task);
        if (stopped !== undefined) throw stopped as Error;
        return 'done';
      } catch (error) {
        if (error instanceof PausedError) return error;
        throw error;
      }
    });
  const loadedDays = () =>
    inProcess(async ({ history, state }) => {
      const records = await readDayRecords({ history, state }, PROJECT);
      return [...records.values()].filter((record) => record.is_stored).map(({ day }) => day);
    });
  /** The requests that an export would need now. */
  const left = () =>
    inProcess(({ history, state }) => planProject({ history, state }, project, settings, {}, clock.now()));
  /** Exports once an hour until everything is loaded, and returns how many runs that took. */
  const untilDone = async (): Promise<number> => {
    for (let runs = 1; ; runs++) {
      if ((await exportOnce()) === 'done') return runs;
      if (runs > 100) throw new Error('too many runs');
      clock.advance(62 * MINUTE_MS);
    }
  };
  return { ...site, exportOnce, loadedDays, left, untilDone };
}

/** How often each page of each day was answered. */
function answered({ platform }: World): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { from, offset, limit, status } of platform.views) {
    const key = `${from} ${offset}`;
    if (limit === 250 && status === 200) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

const statuses = ({ platform }: World, status: number): number =>
  platform.views.filter((view) => view.status === status).length;

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
      const { clock } = world;
      const outcome = await world.exportOnce();
      expect(outcome).toBeInstanceOf(PausedError);
      expect(outcome).toMatchObject({ exitCode: 75 });
      expect(statuses(world, 200)).toBe(100);
      // Each of the connections is refused once, and again after each pause that it waits out.
      expect(statuses(world, 429)).toBeLessThanOrEqual(READS_AT_ONCE * (saysWhen ? 1 : 6));
      const loaded = await world.loadedDays();
      expect(loaded.length).toBeGreaterThan(60);
      expect(loaded.at(-1)).toBe(lastEndedDay(clock.now()));
      const { plan, requests } = await world.left();
      expect(plan?.days).toHaveLength(240 - loaded.length);
      expect(requests).toBe(240 - loaded.length);

      // Until the pause is over, nothing is sent.
      const sent = world.platform.views.length;
      if (outcome instanceof PausedError && saysWhen) {
        clock.advance(30 * MINUTE_MS);
        expect(await world.exportOnce()).toBeInstanceOf(PausedError);
        expect(world.platform.views).toHaveLength(sent);
      }
      clock.advance(62 * MINUTE_MS);
      await world.exportOnce();
      expect(statuses(world, 200)).toBe(200);
      clock.advance(62 * MINUTE_MS);
      expect(await world.untilDone()).toBe(1);
      expect(await world.loadedDays()).toHaveLength(240);
      expect([...answered(world).values()].every((count) => count === 1)).toBe(true);
    },
  );

  test('and others use as well is asked for what is left', async () => {
    const world = await openWorld({ days: 90, pages: 3, limit: 100, othersUsed: 60, saysWhen: true });
    expect(await world.exportOnce()).toBeInstanceOf(PausedError);
    expect(statuses(world, 200)).toBe(40);
    world.clock.advance(62 * MINUTE_MS);
    // As many are accepted in each hour as in the one before the refusal.
    expect(await world.untilDone()).toBeLessThanOrEqual(3);
    expect(statuses(world, 429)).toBeLessThanOrEqual(READS_AT_ONCE);
  });
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

describe('days of many requests, on a platform that answers 100 an hour', () => {
  test.each([true, false])(
    'a day of 30,000 paths is done after two runs, and no page is asked twice; saying when: %s',
    async (saysWhen) => {
      const world = await openWorld({ days: 1, pages: 30_000, limit: 100, saysWhen });
      expect(await world.untilDone()).toBe(2);
      const counts = answered(world);
      expect(counts.size).toBe(120);
      expect([...counts.values()].every((count) => count === 1)).toBe(true);
      await world.inProcess(({ history }) => expectWhole(history));
    },
  );

  test('several of them are read in parts', async () => {
    const world = await openWorld({ days: 12, pages: 5_000, limit: 100, saysWhen: true });
    expect(await world.untilDone()).toBeLessThanOrEqual(4);
    expect(await world.loadedDays()).toHaveLength(12);
    const counts = [...answered(world).values()];
    expect(counts).toHaveLength(12 * 20);
    expect(counts.every((count) => count === 1)).toBe(true);
    await world.inProcess(({ history }) => expectWhole(history));
  });

  test('one that changes between its parts is read again from the start', async () => {
    const world = await openWorld({ days: 1, pages: 10_500, limit: 40, saysWhen: true });
    expect(await world.exportOnce()).toBeInstanceOf(PausedError);
    world.restate([world.firstDay]);
    world.clock.advance(62 * MINUTE_MS);
    await world.untilDone();
    expect(await world.loadedDays()).toHaveLength(1);
    const beginnings = world.platform.views.filter(
      ({ from, to, offset, limit, status }) =>
        from === world.firstDay && to === addDays(from, 1) && offset === 0 && limit > 1 && status === 200,
    );
    expect(beginnings).toHaveLength(2);
  });

  test('are loaded in one run by an export that waits as long as needed', async () => {
    const world = await openWorld({ days: 3, pages: 10_500, limit: 40, saysWhen: true, maxWaitMs: Infinity });
    expect(await world.exportOnce()).toBe('done');
    expect(await world.loadedDays()).toHaveLength(3);
  });
});

test('history.requestsPerHour caps by hand, across processes, and the platform need not refuse', async () => {
  const world = await openWorld({ days: 120, pages: 3, history: { requestsPerHour: 50 } });
  const outcome = await world.exportOnce();
  expect(outcome).toMatchObject({ message: expect.stringContaining('50 of 50 used') as string });
  expect(world.platform.views).toHaveLength(50);
  expect(await world.exportOnce()).toBeInstanceOf(PausedError);
  expect(world.platform.views).toHaveLength(50);
  world.clock.advance(62 * MINUTE_MS);
  expect(await world.untilDone()).toBe(2);
  expect(await world.loadedDays()).toHaveLength(120);
  expect(world.platform.busiestHour()).toBe(50);
});

test('recent days with more changes than one hour is enough to find and reload are corrected over several hours', async () => {
  const world = await openWorld({ days: 40, pages: 251, limit: 20, saysWhen: true });
  const { clock, untilDone } = world;
  await untilDone();
  clock.advance(24 * 60 * MINUTE_MS);
  const changed = [5, 8, 11, 14, 17, 20, 23, 26, 29, 32].map((ago) =>
    addDays(lastEndedDay(clock.now()), -ago),
  );
  world.restate(changed);
  const before = answered(world);
  expect(await untilDone()).toBeLessThanOrEqual(7);
  const after = answered(world);
  for (const at of changed) expect(after.get(`${at} 250`), at).toBe((before.get(`${at} 250`) ?? 0) + 1);
});
