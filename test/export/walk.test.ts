import { describe, expect, it } from 'vitest';
import { EndlessWalkError, PausedError } from '../../src/api/errors.js';
import { day } from '../../src/day.js';
import { walkDay } from '../../src/export/walk.js';
import { type Page, rowsOf, scriptedViews, totalsOf } from './scripted-views.js';

const DAY = day('2026-11-10');

async function walk(walks: readonly (readonly Page[])[], isSettled = true) {
  const { client, queries, walksBegun } = scriptedViews(walks);
  const walked = await walkDay(client, DAY, { isSettled: () => isSettled });
  if (walked === 'unchanged') throw new Error('nothing was stored before');
  return { walked, walks: walksBegun(), queries };
}

const counts = (human: number, ai = 0) => ({ human, ai, total: human + ai });
const GOOD: Page[] = [{ rows: { '/a': [3, 1], '/b': [2, 0] } }, { rows: { '/c': [0, 5] } }];
const TOTALS = counts(5, 6);

describe('a day', () => {
  it('is the window from its start up to, not including, the next day', async () => {
    const { queries } = await walk([GOOD]);
    expect(queries).toMatchObject([
      { dateFrom: '2026-11-10', dateTo: '2026-11-11', limit: 250, offset: 0 },
      { dateFrom: '2026-11-10', dateTo: '2026-11-11', limit: 250, offset: 250 },
    ]);
  });

  it('that adds up is read once', async () => {
    const { walked, walks } = await walk([GOOD]);
    expect(walked).toMatchObject({ verdict: 'consistent', totals: TOTALS, unattributed: counts(0) });
    expect(walked.rows).toEqual(GOOD.flatMap(({ rows }) => rowsOf(rows)));
    expect(walks).toBe(1);
  });

  it('without a view adds up', async () => {
    const { walked, walks } = await walk([[{ rows: {} }]]);
    expect(walked).toMatchObject({ verdict: 'consistent', totals: counts(0), rows: [] });
    expect(walks).toBe(1);
  });

  it('whose totals move between two pages is read again', async () => {
    const moving = [
      { rows: { '/a': [3, 1], '/b': [2, 0] }, totals: TOTALS } as const,
      { rows: { '/c': [0, 6] }, totals: counts(5, 7) } as const,
    ];
    const { walked, walks } = await walk([moving, GOOD]);
    expect(walked).toMatchObject({ verdict: 'consistent', totals: TOTALS });
    expect(walks).toBe(2);
  });

  it('whose totals move to what the rows add up to is read again all the same', async () => {
    const [first, second] = GOOD;
    const moving = [
      { rows: first?.rows ?? {}, totals: counts(4, 6) },
      { rows: second?.rows ?? {}, totals: TOTALS },
    ];
    const { walks } = await walk([moving, GOOD]);
    expect(walks).toBe(2);
  });

  it('that names a path twice is read again, though the sum may fit', async () => {
    const twice = [
      { rows: { '/a': [3, 1], '/b': [2, 0] }, totals: TOTALS } as const,
      { rows: { '/b': [2, 0], '/c': [0, 5] }, totals: TOTALS } as const,
    ];
    const { walked, walks } = await walk([twice, GOOD]);
    expect(walked.verdict).toBe('consistent');
    expect(walks).toBe(2);
  });

  it.each(['human', 'ai', 'total'] as const)('whose %s alone do not add up is read again', async (key) => {
    const page = { rows: { '/a': [3, 1] } } as const;
    const off = { ...page, totals: { ...totalsOf(page.rows), [key]: 9 } };
    const { walked, walks } = await walk([[off], [page]], false);
    expect(walked).toMatchObject({ verdict: 'consistent', totals: counts(3, 1) });
    expect(walks).toBe(2);
  });

  it('whose second reading has to wait for the budget is handed on as the first, marked', async () => {
    const off: Page = { rows: { '/a': [3, 1] }, totals: counts(9) };
    const { client } = scriptedViews([[off]]);
    let asked = 0;
    const paused = new PausedError('The budget is spent.', new Date());
    const views: typeof client.views = (query) =>
      asked++ === 0 ? client.views(query) : Promise.reject(paused);
    expect(await walkDay({ views }, DAY, { isSettled: () => true })).toMatchObject({
      verdict: 'inconsistent',
      rows: rowsOf(off.rows),
    });
    asked = 1;
    await expect(walkDay({ views }, DAY, { isSettled: () => true })).rejects.toBe(paused);
  });

  it('that never adds up is handed on as the best of three readings, marked', async () => {
    const short = (by: number): Page[] => [{ rows: { '/a': [10 - by, 0] }, totals: counts(10) }];
    const { walked, walks } = await walk([short(4), short(1), short(3)]);
    expect(walks).toBe(3);
    expect(walked).toMatchObject({
      verdict: 'inconsistent',
      rows: [{ path: '/a', human: 9 }],
      unattributed: counts(1),
    });
  });

  it('that is settled, and twice reads the same without adding up, keeps the difference as unattributed', async () => {
    const short: Page[] = [
      { rows: { '/a': [3, 1] }, totals: counts(9, 4) },
      { rows: { '/b': [1, 1] }, totals: counts(9, 4) },
    ];
    const reordered: Page[] = [
      { rows: { '/b': [1, 1] }, totals: counts(9, 4) },
      { rows: { '/a': [3, 1] }, totals: counts(9, 4) },
    ];
    const { walked, walks } = await walk([short, reordered]);
    expect(walked).toMatchObject({
      verdict: 'unattributed',
      totals: counts(9, 4),
      unattributed: counts(5, 2),
    });
    expect(walks).toBe(2);
  });

  it('that is not settled is not believed for reading the same twice', async () => {
    const short: Page[] = [{ rows: { '/a': [3, 1] }, totals: counts(9, 4) }];
    const { walked, walks } = await walk([short], false);
    expect(walked.verdict).toBe('inconsistent');
    expect(walks).toBe(3);
  });

  it('whose rows moved is not believed for reading the same twice', async () => {
    const twice: Page[] = [
      { rows: { '/a': [3, 1] }, totals: counts(9, 4) },
      { rows: { '/a': [3, 1] }, totals: counts(9, 4) },
      { rows: { '/b': [1, 1] }, totals: counts(9, 4) },
    ];
    await expect(walk([twice])).rejects.toThrow(EndlessWalkError);
    const moved: Page[] = [
      { rows: { '/a': [3, 1], '/x': [1, 0] }, totals: counts(9, 4) },
      { rows: { '/a': [3, 1], '/b': [1, 1] }, totals: counts(9, 4) },
    ];
    expect((await walk([moved])).walked.verdict).toBe('inconsistent');
  });

  it('whose pages repeat without end is a fault', async () => {
    const client = {
      views: () => Promise.resolve({ totals: counts(1), views: rowsOf({ '/a': [1, 0] }), hasMore: true }),
    };
    await expect(walkDay(client, DAY, { isSettled: () => true })).rejects.toThrow(EndlessWalkError);
  });
});
