import { describe, expect, it, vi } from 'vitest';
import { PagingError, PausedError } from '../../src/api/errors.js';
import type { PageViews } from '../../src/api/schema.js';
import type { Client } from '../../src/api/client.js';
import { day } from '../../src/day.js';
import { isAsStored, storeDay } from '../../src/export/store-day.js';
import { DOCUMENTED_SIZE } from '../../src/export/paging.js';
import { NO_VIEWS, sumCounts } from '../../src/export/totals.js';
import { pageViewsOf } from '../../src/history/days.js';
import { DayWalks, type WalkOptions } from '../../src/export/walk.js';
import { countsOf, noPaths } from '../history/stored-days.js';
import { stateBeside } from '../open-state.js';
import { newStore } from '../open-history.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { byPath, type Moment, movingViews, row, rowsInOrder, withMoved } from './moving-views.js';

const DAY = day('2026-11-10');

const walksOf = (client: Pick<Client, 'views'>, options: Partial<WalkOptions> = {}) =>
  new DayWalks(client, DAY, { pageSize: DOCUMENTED_SIZE, paths: noPaths(), ...options });
const walkDay = (...of: Parameters<typeof walksOf>) => walksOf(...of).read();

/** The result of a walk over a day of which nothing was stored before. */
const resultOf = async (...of: Parameters<typeof walksOf>) => (await learningResultOf(...of)).walked;

/** The same, with what it showed of the pages. */
async function learningResultOf(...of: Parameters<typeof walksOf>) {
  const walks = walksOf(...of);
  const walked = await walks.read();
  if (walked === 'unchanged') throw new Error('nothing was stored before');
  const { counts, ...told } = walked;
  return { walked: { ...told, rows: pageViewsOf(counts) }, pageSize: walks.pageSize };
}

async function walk(moments: readonly (Moment | readonly PageViews[])[], options: Partial<WalkOptions> = {}) {
  const { client, queries, walksBegun } = movingViews(moments);
  return { ...(await learningResultOf(client, options)), walks: walksBegun(), queries };
}

const counts = (human: number, ai = 0) => ({ human, ai, total: human + ai });
const changed = (rows: readonly PageViews[], index: number): PageViews[] =>
  rows.map((one, at) => (at === index ? { ...one, human: one.human + 1, total: one.total + 1 } : one));

describe('a day', () => {
  const rows = rowsInOrder(300);

  it('is the window from its start up to, not including, the next day, and read once if it adds up', async () => {
    const { walked, walks, queries } = await walk([rows]);
    const window = { dateFrom: '2026-11-10', dateTo: '2026-11-11', limit: 250 };
    expect(queries).toMatchObject([
      { ...window, offset: 0 },
      { ...window, offset: 250 },
    ]);
    expect(walked).toEqual({ totals: sumCounts(rows), rows, unattributed: counts(0), doubt: undefined });
    expect(walks).toBe(1);
    expect(await walk([[]])).toMatchObject({ walks: 1, walked: { rows: [], doubt: undefined } });
  });

  it.each([
    [1, 1],
    [2, 2],
    [16, 5],
  ])('is read up to %i pages at once, and only pages that exist', async (atOnce, expected) => {
    const many = Array.from({ length: 2_600 }, (_, index) => row(`/page-${index}`, 9));
    const { client, queries } = movingViews([many]);
    let underWay = 0;
    let most = 0;
    const slow: typeof client = {
      views: async (query) => {
        most = Math.max(most, ++underWay);
        await new Promise(setImmediate);
        underWay--;
        return client.views(query);
      },
    };
    const walked = await resultOf(slow, { atOnce: () => atOnce });
    expect(walked).toMatchObject({ doubt: undefined, rows: many });
    expect(queries.map(({ offset }) => offset)).toEqual(Array.from({ length: 11 }, (_, page) => page * 250));
    expect(most).toBe(expected);
  });

  const small = [row('/a', 3), row('/b', 2)];
  const odd = ['', '\ufeff/', '/\0', '/\\n', '/"', '/\u2028', '/💥', '/\\ud800'].map((path) => row(path, 1));
  it.each<[string, readonly PageViews[], boolean, readonly PageViews[], number?]>([
    ['all of its rows in another order', small.toReversed(), true, small],
    ['the first of its rows', rows, true, rows],
    ['all of its rows, with odd paths', odd, true, odd],
    ['another odd path', [...odd.slice(1), row('/\0b', 1)], false, odd],
    ['no rows, as before', [], true, []],
    ['a count that changed', [row('/a', 4), row('/b', 1)], false, small],
    ['a page that is new', [row('/a', 3), row('/c', 2)], false, small],
    ['a row less', [row('/a', 3)], false, small],
    ['a row again and again', Array.from({ length: 260 }, () => row('/a', 3)), false, small],
    ['other totals', small, false, small, 1],
    ['a change on the first of three pages', changed(rowsInOrder(600), 1), false, rowsInOrder(600)],
  ])('that is stored, and now has %s, is unchanged: %#', async (_, now, isUnchanged, stored, more = 0) => {
    const totals = sumCounts(stored);
    const { client, queries } = movingViews([{ rows: now, totals: { ...totals, ai: totals.ai + more } }]);
    const [history, at] = [await newStore(), { project: 'prj_1', day: DAY, now: NOW }];
    const paths = await history.pathsOf(at.project);
    const walked = { totals, counts: countsOf(stored, paths), unattributed: NO_VIEWS, doubt: undefined };
    const { state } = await stateBeside(history);
    await storeDay({ history, state }, at, walked, 'provisional');
    const options: Partial<WalkOptions> = { isAsStored: (first) => isAsStored(history, at, first) };
    expect((await walkDay(client, options)) === 'unchanged').toBe(isUnchanged);
    if (isUnchanged) expect(queries).toHaveLength(1);
  });

  it.each(['human', 'ai', 'total'] as const)('whose %s alone do not add up is read again', async (key) => {
    const page = [row('/a', 3, 1)];
    const off = { rows: page, totals: { ...counts(3, 1), [key]: 9 } };
    const { walked, walks } = await walk([off, page]);
    expect(walked).toMatchObject({ doubt: undefined, totals: counts(3, 1) });
    expect(walks).toBe(2);
  });

  it('whose pages repeat without end is an error', async () => {
    const views = vi.fn(() =>
      Promise.resolve({ totals: counts(90_000), views: rowsInOrder(250), hasMore: true }),
    );
    await expect(walkDay({ views })).rejects.toThrow(PagingError);
    expect(views).toHaveBeenCalledTimes(2);
  });

  it('ends with an empty page, although more are said to follow', async () => {
    const { client } = movingViews([{ rows: [row('/a', 3)], totals: counts(5) }]);
    const views: typeof client.views = async (query) => ({ ...(await client.views(query)), hasMore: true });
    expect(await resultOf({ views })).toMatchObject({ unattributed: counts(2) });
  });

  it('with pages shorter than requested follows the rows, and ends as soon as they add up', async () => {
    const capped = movingViews([rows]);
    const views: typeof capped.client.views = async (query) => {
      const page = await capped.client.views({ ...query, limit: Math.min(query.limit, 100) });
      return { ...page, hasMore: true };
    };
    const walked = await resultOf({ views });
    expect(walked).toMatchObject({ doubt: undefined, totals: sumCounts(rows) });
    expect(capped.queries.map(({ offset }) => offset)).toEqual([0, 100, 200]);
  });
});

describe('rows that move while a day is read', () => {
  const rows = rowsInOrder(900);

  it('are found by the next walk, which ends as soon as everything is accounted for', async () => {
    // Row 700 moves to the top after the first page: row 249 comes twice, and row 700 never.
    const { walked, walks, queries, pageSize } = await walk([rows, withMoved(rows, 700, 0)]);
    expect(pageSize.isShuffled).toBe(true);
    expect(walks).toBe(2);
    expect(queries).toHaveLength(5);
    expect(walked.doubt).toBeUndefined();
    expect(byPath(walked.rows)).toEqual(byPath(rows));
  });

  it('do not show that the platform shuffles rows if the totals changed too', async () => {
    const { walks, pageSize } = await walk([rows, withMoved(changed(rows, 700), 700, 0)]);
    expect(walks).toBe(2);
    expect(pageSize.isShuffled).toBe(false);
  });

  it('are read three times at most while the totals change, even if each time further rows are found', async () => {
    const momentAt = (at: number) => ({ rows: rowsInOrder(270 + at), totals: counts(1_000_000 + at) });
    const { walked, walks } = await walk(Array.from({ length: 40 }, (_, at) => momentAt(at)));
    expect(walks).toBe(3);
    expect(walked.doubt).toContain('rows moved');
  });

  it('are read as long as each walk finds further rows, in pages of other sizes', async () => {
    const moments = Array.from({ length: 10 }, (_, at) => ({ rows: [row(`/${at}`, 1)], totals: counts(10) }));
    const { walked, walks, queries } = await walk(moments);
    expect(walks).toBe(10);
    expect(walked.doubt).toBeUndefined();
    expect(queries.slice(0, 5).map(({ limit }) => limit)).toEqual([250, 225, 175, 125, 225]);
  });

  it('and seem to add up while the totals change are read again', async () => {
    const [page, rest] = [rowsInOrder(300), [...rowsInOrder(300), row('/fallen', 5)]];
    // Row 249 was never read, and the path that fell behind it twice, with other counts.
    const seen = sumCounts([row('/fallen', 900), ...page.slice(0, 249), ...rest.slice(250)]);
    const moments = [[row('/fallen', 900), ...page], { rows: rest, totals: seen }, rest];
    const { walked, walks } = await walk(moments);
    expect(walks).toBe(2);
    expect(byPath(walked.rows)).toEqual(byPath(rest));
  });

  it('and were found by an earlier export count only while the totals are the same', async () => {
    const now: Moment = { rows: [row('/a', 3)], totals: counts(5) };
    const paths = noPaths();
    const old = countsOf([row('/old', 2)], paths);
    const before = (totals: number) => ({ paths, found: { totals: counts(totals), counts: old } });
    expect((await walk([now], before(5))).walked).toMatchObject({ doubt: undefined });
    const { walked } = await walk([now], before(9));
    expect(walked.rows).toEqual([row('/a', 3)]);
    expect(walked.doubt).toBeDefined();
  });

  it('are complete even if only all walks together found them', async () => {
    const lossyAt = (index: number) => withMoved(rows, index, 0);
    const { walked, walks } = await walk([
      ...[rows, lossyAt(899), lossyAt(899), lossyAt(899)],
      ...[rows, lossyAt(850), lossyAt(850), lossyAt(850), lossyAt(850)],
    ]);
    expect(walks).toBe(2);
    expect(walked).toMatchObject({ doubt: undefined, totals: sumCounts(rows) });
    expect(byPath(walked.rows)).toEqual(byPath(rows));
  });

  it('and whose counts rise meanwhile are accepted only with their latest counts', async () => {
    // A row of the first page gets a view after it was read: the day is one short until that row is read again.
    const risen = changed(rows, 3);
    const { walked, queries } = await walk([rows, risen]);
    expect(queries).toHaveLength(5);
    expect(byPath(walked.rows)).toEqual(byPath(risen));
    expect(walked.totals).toEqual(sumCounts(risen));
  });

  it('and rise on a page not yet read are right at once', async () => {
    const risen = changed(rows, 600);
    const { walked, walks } = await walk([rows, risen]);
    expect(walks).toBe(1);
    expect(walked).toMatchObject({ totals: sumCounts(risen), rows: risen, doubt: undefined });
  });

  it('are read in pages of another size: a server that loses a row at each page end loses another one', async () => {
    const same = Array.from({ length: 300 }, (_, index) => row(`/same-${index}`, 1));
    const unstable: Pick<Client, 'views'> = {
      // Rows with equal counts in an order that depends on the page: one comes twice, another never.
      views: ({ offset, limit }) =>
        Promise.resolve({
          totals: sumCounts(same),
          views: (offset === 0 ? same : withMoved(same, limit, limit - 1)).slice(offset, offset + limit),
          hasMore: offset + limit < same.length,
        }),
    };
    const { doubt, rows } = await resultOf(unstable);
    expect([doubt, byPath(rows)]).toEqual([undefined, byPath(same)]);
  });

  it.each([
    // The second answer repeats rows, the next two show some of those missing, and four show none.
    [
      [0, 100, 30],
      [0, 250, 10, 56, 51, 46, 41, 36, 0, 10, 235],
    ],
    // The fourth shows the last of them.
    [
      [0, 100, 0, 150],
      [0, 250, 10, 56],
    ],
  ])(
    'with equal counts are asked for again until all are found, or too many answers show none: %#',
    async (turns, asked) => {
      const top = Array.from({ length: 10 }, (_, index) => row(`/top-${index}`, 100 - index));
      const equal = Array.from({ length: 300 }, (_, index) => row(`/equal-${index}`, 1));
      const offsets: number[] = [];
      const { signal } = new AbortController();
      const views: Client['views'] = ({ offset, limit }, options) => {
        expect(options?.signal).toBe(signal);
        offsets.push(offset);
        const turn = turns.shift() ?? 0;
        const all = [...top, ...equal.slice(turn), ...equal.slice(0, turn)];
        const page = all.slice(offset, offset + limit);
        return Promise.resolve({ totals: sumCounts(all), views: page, hasMore: offset + limit < all.length });
      };
      const { doubt, rows } = await resultOf({ views }, { signal });
      expect([doubt, byPath(rows)]).toEqual([undefined, byPath([...top, ...equal])]);
      expect(offsets).toEqual(asked);
    },
  );

  it('and vanish from the next walk are not kept', async () => {
    const off = { rows: [row('/old', 2), row('/a', 3)], totals: counts(3) };
    const { walked } = await walk([off, [row('/a', 3)]]);
    expect(walked).toMatchObject({ rows: [row('/a', 3)], doubt: undefined });
  });

  it('without ever adding up are returned as last read, with the doubt', async () => {
    const short = (by: number): Moment => ({ rows: [row('/a', 10 - by)], totals: counts(10) });
    const { walked, walks } = await walk([short(4), short(1), short(3)]);
    expect(walks).toBe(3);
    expect(walked).toMatchObject({ rows: [{ path: '/a', human: 7 }], unattributed: counts(3) });
    expect(walked.doubt).toContain('rows moved');
  });

  it('are returned as first read, with the doubt, when the next walk has to wait', async () => {
    const { client } = movingViews([{ rows: [row('/a', 3, 1)], totals: counts(9) }]);
    let asked = 0;
    const paused = new PausedError('The budget is spent.', new Date());
    const views: typeof client.views = (query) =>
      asked++ === 0 ? client.views(query) : Promise.reject(paused);
    const walks = walksOf({ views });
    const walked = await walks.read();
    expect(walked).toMatchObject({ doubt: expect.stringContaining('moved') as string });
    expect(walked !== 'unchanged' && pageViewsOf(walked.counts)).toEqual([row('/a', 3, 1)]);
    // Only the pages of a first walk are kept.
    expect(walks.unfinished.size).toBe(0);
    asked = 1;
    const none = walksOf({ views });
    await expect(none.read()).rejects.toBe(paused);
    expect(none.unfinished.size).toBe(0);
  });
});

it('the rows of a day that has to wait are passed on as one page, after which the next export goes on', async () => {
  const many = rowsInOrder(2_600);
  const { client, queries } = movingViews([many]);
  const views: typeof client.views = (query) =>
    query.offset === 1_500
      ? Promise.reject(new PausedError('The budget is spent.', new Date()))
      : client.views(query);
  const walks = walksOf({ views });
  await expect(walks.read()).rejects.toThrow(PausedError);
  const kept = walks.unfinished;
  expect(kept).toEqual(
    new Map([[0, { totals: sumCounts(many), views: many.slice(0, 1_500), hasMore: true }]]),
  );
  const before = queries.length;
  expect((await resultOf(client, { kept })).rows).toEqual(many);
  expect(queries.slice(before).map(({ offset }) => offset)).toEqual([1_500, 1_750, 2_000, 2_250, 2_500]);
});

describe('a path in two rows', () => {
  const rest = rowsInOrder(300);

  it.each([
    ['of one page', [row('/twice', 900), row('/twice', 500), ...rest]],
    ['of one page with equal counts', [row('/twice', 900), row('/twice', 900), ...rest]],
    ['of two pages', [row('/twice', 900), ...rest, row('/twice', 0, 1)]],
  ])('%s is merged when that adds up', async (_, rows) => {
    const { walked, walks } = await walk([rows]);
    expect(walks).toBe(1);
    expect(walked).toMatchObject({ doubt: undefined, unattributed: counts(0) });
    const twice = sumCounts(rows.filter(({ path }) => path === '/twice'));
    expect(byPath(walked.rows)).toEqual(byPath([{ path: '/twice', ...twice }, ...rest]));
  });

  it('with equal counts on two pages is merged once a second walk repeats it', async () => {
    const rows = [row('/twice', 1), ...rest, row('/twice', 1)];
    const { walked, walks } = await walk([rows]);
    expect(walks).toBe(2);
    expect(walked.doubt).toBeUndefined();
    expect(byPath(walked.rows)).toEqual(byPath([row('/twice', 2), ...rest]));
  });

  it('counts once if the second is only a copy', async () => {
    const rows = [row('/twice', 900), row('/twice', 900), ...rest];
    const totals = sumCounts(rows.slice(1));
    const { walked, walks } = await walk([{ rows, totals }]);
    expect(walks).toBe(1);
    expect(walked).toMatchObject({ doubt: undefined, totals, unattributed: counts(0) });
  });
});

describe('views that belong to no page', () => {
  const rows = [row('/a', 98), row('/b', 40, 60)];
  const totals = counts(140, 60);

  it('are unattributed when a day reads the same twice, in any order', async () => {
    const { walked, walks } = await walk([
      { rows, totals },
      { rows: rows.toReversed(), totals },
    ]);
    expect(walked).toMatchObject({ doubt: undefined, totals, unattributed: counts(2) });
    expect(walks).toBe(2);
  });

  it('are not accepted if rows moved, although both readings are the same', async () => {
    const page = rowsInOrder(300);
    const short = { rows: [...page.slice(0, 250), ...page.slice(249, 299)], totals: sumCounts(page) };
    const walks = [short, { ...short, rows: withMoved(short.rows, 0, 299) }];
    expect((await walk(walks)).walked.doubt).toBeDefined();
    // Totals that changed during the first reading make a third one necessary.
    const withMore = (more: number) => ({ rows: page, totals: counts(sumCounts(page).total + more) });
    const changing = await walk([withMore(5), withMore(6)]);
    expect(changing).toMatchObject({ walks: 3, walked: { doubt: undefined } });
  });

  it.each([
    ['5% of all views', counts(200), undefined],
    ['of the other audience', counts(0, 190), '200.0%'],
    ['more', counts(201), '5.5%'],
    ['43%', counts(334), '43.1%'],
    ['fewer than the rows have', counts(100), '90.0%'],
  ])('leave the day in doubt when they are %s', async (_, totals, share) => {
    const { walked, walks } = await walk([{ rows: [row('/a', 190)], totals }]);
    expect(walks).toBe(2);
    const words = `its pages and its totals differ by ${share}; it will be read again later`;
    expect(walked.doubt).toBe(share && words);
  });
});
