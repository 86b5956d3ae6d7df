import pMap from 'p-map';
import { Agent, request } from 'undici';
import { addDays, type Day, daysIn } from '../../src/day.js';

interface Page {
  readonly views: readonly unknown[];
  readonly hasMore: boolean;
}

const headers = { authorization: 'Bearer bench' };
const dispatcher = new Agent();

/**
 * Ways to fetch and parse a page: as a typical script does, and with as little overhead as Node
 * allows.
 */
export const PAGE_READERS = {
  fetch: async (url: string) => (await (await fetch(url, { headers })).json()) as Page,
  undici: async (url: string) =>
    JSON.parse(await (await request(url, { dispatcher, headers })).body.text()) as Page,
};

/**
 * Sends an export's requests and parses the responses, without checks or storage. Returns the rows
 * read.
 */
export async function bareLoop(
  read: (url: string) => Promise<Page>,
  baseUrl: string,
  first: Day,
  last: Day,
  concurrency: number,
): Promise<number> {
  let rows = 0;
  await pMap(
    daysIn({ first, last }),
    async (day) => {
      for (let offset = 0, hasMore = true; hasMore; offset += 250) {
        const page = await read(
          `${baseUrl}/v1/analytics/prj_bench/views?dateFrom=${day}&dateTo=${addDays(day, 1)}&limit=250&offset=${offset}`,
        );
        rows += page.views.length;
        hasMore = page.hasMore;
      }
    },
    { concurrency },
  );
  return rows;
}
