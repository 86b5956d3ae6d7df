import { expect } from 'vitest';
import { z } from 'zod';
import type { ViewCounts } from '../../src/api/schema.js';
import type { Reader } from '../../src/history/duckdb.js';
import { HistoryStore } from '../../src/history/store.js';

const storedDay = z.object({
  day: z.string(),
  state: z.string(),
  failure: z.string().nullable(),
  human: z.int().nullable(),
  ai: z.int().nullable(),
  total: z.int().nullable(),
  pages: z.int().nullable(),
  unattributed_total: z.int().nullable(),
});
export type StoredDay = z.infer<typeof storedDay>;

/** Days that failed have that state, whatever is stored of them. */
const DAYS = `
  SELECT
    day, if(failed.failure IS NULL, days.state, 'failed') AS state, coalesce(failed.failure, problem) AS failure,
    human, ai, total, pages, unattributed_total
  FROM days FULL JOIN day_failures AS failed USING (project, day)
  ORDER BY project, day`;

/** What is known of each day, oldest first. */
export function storedDays(history: Reader): Promise<StoredDay[]> {
  // Failures are in the state.
  if (history instanceof HistoryStore) history.refresh();
  return history.query(DAYS, storedDay);
}

/** The state of each day, oldest first. */
export const statesOf = async (history: Reader): Promise<Record<string, string>> =>
  Object.fromEntries((await storedDays(history)).map(({ day, state }) => [day, state]));

export const storedRows = (history: Reader, day: string) =>
  history.query(
    'SELECT path, human, ai, total FROM page_views WHERE day = $day::DATE ORDER BY path',
    z.object({ path: z.string(), human: z.int(), ai: z.int(), total: z.int() }),
    { day },
  );

export const storedTotals = async (history: Reader): Promise<ViewCounts | undefined> =>
  (
    await history.query(
      'SELECT sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(total)::BIGINT AS total FROM page_views',
      z.object({ human: z.int(), ai: z.int(), total: z.int() }),
    )
  )[0];

/** Each row is a problem: a repeated path, rows of a day not loaded, or a day that does not add up but is not marked. */
const BROKEN = `
  SELECT project, day::VARCHAR AS day, 'a path twice' AS fault FROM page_views GROUP BY project, day, path HAVING count(*) > 1
  UNION ALL
  SELECT project, day::VARCHAR, 'a day twice' FROM days GROUP BY project, day HAVING count(*) > 1
  UNION ALL
  SELECT DISTINCT project, day::VARCHAR, 'rows of a day that is not loaded' FROM page_views ANTI JOIN days USING (project, day)
  UNION ALL
  SELECT load.project, load.day::VARCHAR, 'rows that do not add up to the totals'
  FROM days AS load LEFT JOIN page_views AS view USING (project, day)
  GROUP BY ALL
  HAVING coalesce(sum(view.human), 0) + any_value(unattributed_human) <> any_value(load.human)
    OR coalesce(sum(view.ai), 0) + any_value(unattributed_ai) <> any_value(load.ai)
    OR coalesce(sum(view.total), 0) + any_value(unattributed_total) <> any_value(load.total)
    OR count(view.path) <> any_value(load.pages)`;

/** Asserts what is true of every stored day, however it was loaded. */
export async function expectWhole(history: Reader): Promise<void> {
  const row = z.object({ project: z.string(), day: z.string(), fault: z.string() });
  expect(await history.query(BROKEN, row)).toEqual([]);
}
