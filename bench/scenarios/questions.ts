import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { addDays, type Day } from '../../src/day.js';
import { openHistory } from '../../src/warehouse/published.js';
import { publish } from '../../src/warehouse/publish.js';
import { FIRST, type Shape, timed, withHistory } from './big-history.js';

const OPENINGS = 7;

/** Queries over the whole history, its last seven days, and a page viewed every day. */
const questionsOf = (last: Day) => ({
  site_days: 'FROM site_days',
  human_vs_ai: `FROM human_vs_ai('${FIRST}', '${last}', 'month')`,
  top_pages: `FROM top_pages('${addDays(last, -6)}', '${last}') LIMIT 10`,
  page_history: "FROM page_history('/docs/page-1234')",
  movers: `FROM movers('${addDays(last, -6)}')`,
});

export interface Answered {
  readonly rows: number;
  readonly bytes: number;
  /**
   * Per query: the first answer after opening the file, as in `readership sql`, and those that
   * follow.
   */
  readonly ms: Readonly<Record<string, { first: number; again: number }>>;
}

const countRow = z.object({ rows: z.int() });

/** Query times of a published history of the given shape: medians over several openings. */
export function askHistory(shape: Shape): Promise<Answered> {
  return withHistory(shape, async (warehouse, historyFile) => {
    await publish(warehouse, historyFile);
    const [count] = await warehouse.query('SELECT count(*) AS rows FROM page_views', countRow);
    const ms: Record<string, { first: number; again: number }> = {};
    for (const [name, sql] of Object.entries(questionsOf(addDays(FIRST, shape.days - 1))))
      ms[name] = await ask(historyFile, sql);
    return { rows: count?.rows ?? 0, bytes: (await stat(historyFile)).size, ms };
  });
}

async function ask(historyFile: string, sql: string): Promise<{ first: number; again: number }> {
  const first: number[] = [];
  const again: number[] = [];
  for (let opening = 0; opening < OPENINGS; opening++) {
    const history = await openHistory(historyFile);
    const answer = () => history.connection.runAndReadAll(sql);
    first.push(await timed(answer));
    again.push(await timed(answer), await timed(answer));
    history.close();
  }
  return { first: middle(first), again: middle(again) };
}

const middle = (values: readonly number[]): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
