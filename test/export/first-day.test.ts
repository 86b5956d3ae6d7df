import { describe, expect, it } from 'vitest';
import { day } from '../../src/day.js';
import { resolveRange } from '../../src/export/range.js';
import { openClient } from '../api/open-client.js';
import { liveWarehouse } from '../open-warehouse.js';
import { openSandbox } from '../sandbox/open-sandbox.js';

/** One request, and one for each halving of the twelve years in which a history may begin. */
const MOST_REQUESTS = 14;

async function setUp(firstDay: string) {
  const { sandbox, clock } = await openSandbox({ firstDay: day(firstDay), pages: 20 });
  const { baseUrl, projectId, apiKey } = sandbox;
  const client = openClient(baseUrl, { projectId, apiKey, limits: { responseTimeoutMs: 20_000 } });
  const warehouse = await liveWarehouse();
  const request = { warehouse, client, project: projectId, now: clock.now() };
  return { request, asked: () => sandbox.inspect().requests.recent.length };
}

describe('where a history begins', () => {
  it.each(['2026-11-17', '2026-11-02', '2025-12-31'])(
    'is found at %s with one request for each halving, and remembered',
    async (firstDay) => {
      const { request, asked } = await setUp(firstDay);
      expect(await resolveRange({ ...request, start: 'auto' })).toEqual({
        first: firstDay,
        last: '2026-11-17',
      });
      expect(asked()).toBeLessThanOrEqual(MOST_REQUESTS);
      const before = asked();
      expect(await resolveRange({ ...request, start: 'auto' })).toMatchObject({ first: firstDay });
      expect(asked()).toBe(before);
    },
  );

  it('is nowhere while the platform has no view: it is looked for again next time', async () => {
    const { request, asked } = await setUp('2026-11-18');
    expect(await resolveRange({ ...request, start: 'auto' })).toBeUndefined();
    expect(asked()).toBe(1);
    expect(await resolveRange({ ...request, start: 'auto' })).toBeUndefined();
    expect(asked()).toBe(2);
  });

  it('is not asked for when it is configured or given', async () => {
    const { request, asked } = await setUp('2026-11-02');
    expect(await resolveRange({ ...request, start: day('2026-11-05') })).toEqual({
      first: '2026-11-05',
      last: '2026-11-17',
    });
    expect(
      await resolveRange({ ...request, start: 'auto', from: day('2026-11-06'), to: day('2026-11-08') }),
    ).toEqual({
      first: '2026-11-06',
      last: '2026-11-08',
    });
    expect(asked()).toBe(0);
  });

  it('ends with yesterday, UTC, whatever is asked for', async () => {
    const { request } = await setUp('2026-11-02');
    const range = { ...request, start: day('2026-11-05'), to: day('2026-12-31') };
    expect(await resolveRange(range)).toMatchObject({ last: '2026-11-17' });
  });
});
