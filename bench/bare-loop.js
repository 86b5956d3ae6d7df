/**
 * Only the requests of an export: 16 connections with undici, whose answers are parsed and discarded. Its arguments are
 * the server, the first day, and the number of days.
 */
import process from 'node:process';
import { URL } from 'node:url';
import { Agent, request } from 'undici';

const [baseUrl, first, days] = process.argv.slice(2);
const dispatcher = new Agent({ connections: 16 });
const headers = { authorization: 'Bearer bench' };
const dayAt = (index) => new Date(Date.parse(first) + index * 86_400_000).toISOString().slice(0, 10);

let next = 0;
async function readDays() {
  for (let index = next++; index < Number(days); index = next++) {
    for (let offset = 0, hasMore = true; hasMore; offset += 250) {
      const url = new URL('/v1/analytics/prj_0/views', baseUrl);
      url.search = `dateFrom=${dayAt(index)}&dateTo=${dayAt(index + 1)}&limit=250&offset=${offset}`;
      const { body } = await request(url, { dispatcher, headers });
      ({ hasMore } = JSON.parse(await body.text()));
    }
  }
}
await Promise.all(Array.from({ length: 16 }, readDays));
await dispatcher.close();
