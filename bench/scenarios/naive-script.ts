import { DuckDBInstance } from '@duckdb/node-api';
import { addDays, type Day, daysIn } from '../../src/day.js';

interface Page {
  readonly views: { path: string; human: number; ai: number; total: number }[];
  readonly hasMore: boolean;
}

/**
 * What a quick script does: one request at a time, one INSERT per row. Returns the number of rows
 * stored.
 */
export async function naiveScript(baseUrl: string, file: string, first: Day, last: Day): Promise<number> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  await connection.run('CREATE TABLE views (day DATE, path VARCHAR, human BIGINT, ai BIGINT, total BIGINT)');
  let rows = 0;
  for (const day of daysIn({ first, last })) {
    for (let offset = 0, hasMore = true; hasMore; offset += 250) {
      const url = `${baseUrl}/v1/analytics/prj_bench/views?dateFrom=${day}&dateTo=${addDays(day, 1)}&limit=250&offset=${offset}`;
      const page = (await (await fetch(url)).json()) as Page;
      for (const { path, human, ai, total } of page.views) {
        await connection.run('INSERT INTO views VALUES ($1, $2, $3, $4, $5)', [day, path, human, ai, total]);
        rows++;
      }
      hasMore = page.hasMore;
    }
  }
  connection.closeSync();
  instance.closeSync();
  return rows;
}
