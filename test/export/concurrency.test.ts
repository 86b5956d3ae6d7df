import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { expect, test } from 'vitest';
import { addDays, day as toDay, lastEndedDay } from '../../src/day.js';
import { sumCounts } from '../../src/export/totals.js';
import { openClient } from '../api/open-client.js';
import { newStore } from '../open-history.js';
import { rowsOf } from '../platform.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { reply, serve } from '../serve.js';
import { exportFrom } from './export-from.js';

test.each([1, 4])('no more than %i days are read at once, as the platform sees it', async (concurrency) => {
  const rows = rowsOf(toDay('2026-11-17'), 900);
  const underWay = new Set<string>();
  let most = 0;
  let atOnce = 0;
  let mostAtOnce = 0;
  const server = await serve(async ({ url }, response) => {
    const offset = Number(url.searchParams.get('offset'));
    const asked = url.searchParams.get('dateFrom') ?? '';
    underWay.add(asked);
    most = Math.max(most, underWay.size);
    mostAtOnce = Math.max(mostAtOnce, ++atOnce);
    await delay(3);
    atOnce--;
    const hasMore = offset + 250 < rows.length;
    if (!hasMore) underWay.delete(asked);
    reply(response, 200, { totals: sumCounts(rows), views: rows.slice(offset, offset + 250), hasMore });
  });
  const client = openClient(server.baseUrl);
  const range = { from: addDays(lastEndedDay(NOW), -23), to: lastEndedDay(NOW) };
  const inTurn = pLimit(concurrency);
  const { results } = await exportFrom({ history: await newStore(), client, ...range, inTurn });
  expect(results).toHaveLength(24);
  expect([most, mostAtOnce]).toEqual([concurrency, concurrency]);
});
