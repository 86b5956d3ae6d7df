import { Agent, request } from 'undici';
import pMap from 'p-map';
import { addDays, type Day, daysIn } from '../../src/day.js';

/** The same requests as an export, fetched and parsed, with nothing checked and nothing stored. Rows read. */
export async function bareLoop(baseUrl: string, first: Day, last: Day, concurrency: number): Promise<number> {
  const dispatcher = new Agent();
  let rows = 0;
  await pMap(
    daysIn({ first, last }),
    async (day) => {
      for (let offset = 0, hasMore = true; hasMore; offset += 250) {
        const url = `${baseUrl}/v1/analytics/prj_bench/views?dateFrom=${day}&dateTo=${addDays(day, 1)}&limit=250&offset=${offset}`;
        const response = await request(url, { dispatcher, headers: { authorization: 'Bearer bench' } });
        const page = JSON.parse(await response.body.text()) as { views: unknown[]; hasMore: boolean };
        rows += page.views.length;
        hasMore = page.hasMore;
      }
    },
    { concurrency },
  );
  await dispatcher.close();
  return rows;
}
