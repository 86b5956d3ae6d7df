import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { addDays } from '../src/day.js';
import { openHistory } from '../src/history/history.js';
import { inTemporaryDirectory, median } from './processes.js';
import { createHistory, firstOf, type Shape, yesterday } from './workspace.js';

const OPENINGS = 7;

/** Queries over the whole history, its last seven days, and a page viewed every day. */
function questionsOf({ days }: Shape) {
  const last = addDays(yesterday(), -1);
  return {
    site_days: 'FROM site_days',
    human_vs_ai: `FROM human_vs_ai('${firstOf(days)}', '${last}', 'month')`,
    top_pages: `FROM top_pages('${addDays(last, -6)}', '${last}') LIMIT 10`,
    page_history: "FROM page_history('/docs/guides/page-1234')",
    movers: `FROM movers('${addDays(last, -6)}')`,
  };
}

export interface Answered {
  readonly rows: number;
  readonly bytes: number;
  /** The first answer after opening the file, as in `readership sql`, and those that follow. */
  readonly ms: Readonly<Record<string, { first: number; again: number }>>;
}

const countRow = z.object({ rows: z.int() });

/** Query times of a history of the given shape: medians over several openings. */
export const askHistory = (shape: Shape): Promise<Answered> =>
  inTemporaryDirectory((directory) =>
    createHistory(directory, shape).then(async (historyFile) => {
      const history = await openHistory(historyFile);
      const [count] = await history.query('SELECT count(*) AS rows FROM page_views', countRow);
      history.close();
      const ms: Record<string, { first: number; again: number }> = {};
      for (const [name, sql] of Object.entries(questionsOf(shape))) ms[name] = await ask(historyFile, sql);
      return { rows: count?.rows ?? 0, bytes: (await stat(historyFile)).size, ms };
    }),
  );

async function ask(historyFile: string, sql: string): Promise<{ first: number; again: number }> {
  const first: number[] = [];
  const again: number[] = [];
  for (let opening = 0; opening < OPENINGS; opening++) {
    const history = await openHistory(historyFile);
    const answer = async () => {
      const startedMs = performance.now();
      await history.connection.runAndReadAll(sql);
      return performance.now() - startedMs;
    };
    first.push(await answer());
    again.push(await answer(), await answer());
    history.close();
  }
  return { first: median(first), again: median(again) };
}
