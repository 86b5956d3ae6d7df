import { addMinutes, differenceInMinutes } from 'date-fns';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { Client } from '../../src/api/client.js';
import { Transport } from '../../src/api/transport.js';
import { openBudgets } from '../../src/app/connection.js';
import { sharedLimits } from '../../src/app/workspace.js';
import { settingsSchema } from '../../src/config/schema.js';
import { addDays, type Day, daysBetween, lastEndedDay } from '../../src/day.js';
import { forecastExport, type ForecastRequest } from '../../src/export/forecast.js';
import { exportStep } from '../../src/steps/export.js';
import { KEY } from '../api/open-client.js';
import { DAY_MS, MINUTE_MS, sleepingClock } from '../budget/open-budget.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { rowsOf, servePlatform } from '../platform.js';
import { stepContext } from '../steps/step-context.js';
import { tempDir } from '../temp-dir.js';

interface SiteOptions {
  readonly days: number;
  /** Of each day, or of a day so many days after the first one. */
  readonly pages: number | ((age: number) => number);
  readonly projects: readonly string[];
  readonly limit?: number;
}

/** Projects of one organization, each with its own key, on a platform that refuses requests above the limit. */
async function openSite({ days, pages, projects, limit = 100 }: SiteOptions) {
  const clock = sleepingClock();
  const firstDay = addDays(lastEndedDay(clock.now()), 1 - days);
  const cached = new Map<Day, ReturnType<typeof rowsOf>>();
  const platform = await servePlatform({
    now: clock.now,
    limit,
    rowsOf: (at) => {
      const size = typeof pages === 'number' ? pages : pages(daysBetween(firstDay, at));
      const rows = cached.get(at) ?? (at < firstDay ? [] : rowsOf(at, size));
      cached.set(at, rows);
      return rows;
    },
  });
  const written = {
    baseUrl: platform.baseUrl,
    projects: projects.map((id) => ({ id, apiKeyEnv: `KEY_OF_${id}` })),
    history: { start: firstDay, requestsPerHour: limit, maxWait: '0s' },
  };
  const settings = settingsSchema.parse(written);
  const environment = Object.fromEntries(projects.map((id) => [`KEY_OF_${id}`, KEY]));
  const configuration = { settings, directory: '', environment };
  const path = join(await tempDir(), 'warehouse.duckdb');

  /** Exports in a new process until the budget or a kill stops it. Returns when it may resume. */
  const exportOnce = async (
    bounds: { from?: Day } = {},
    killedAfter = Infinity,
  ): Promise<Date | undefined> => {
    const warehouse = await liveWarehouse(path);
    const kill = new AbortController();
    let sent = 0;
    const paceOf = openBudgets(
      warehouse,
      { settings, configuration },
      clock.now,
      () => undefined,
      clock.sleep,
    );
    const transport = new Transport();
    const clients = settings.projects.map((project) => {
      const pace = paceOf(project);
      if (pace === undefined) throw new Error('no budget');
      return new Client({
        baseUrl: platform.baseUrl,
        projectId: project.id,
        apiKey: KEY,
        keyName: 'KEY',
        now: clock.now,
        pace,
        transport,
        retries: { retries: 2, minDelayMs: 1, maxDelayMs: 2_000 },
        onRequest: () => {
          clock.advance(50);
          if (++sent >= killedAfter) kill.abort(new Error('killed'));
        },
      });
    });
    const context = stepContext(warehouse, {
      settings: written,
      projects: settings.projects,
      now: clock.now,
      signal: kill.signal,
      limits: sharedLimits({ settings, configuration }),
      clientOf: ({ id }) => {
        const client = clients[projects.indexOf(id)];
        if (client === undefined) throw new Error('no client');
        return client;
      },
    });
    try {
      const { error } = await exportStep(context, bounds);
      if (kill.signal.aborted) return addMinutes(clock.now(), 1);
      if (error instanceof PausedError) return error.resumeAt;
      expect(error).toBeUndefined();
      return undefined;
    } finally {
      await transport.close();
      await closeNow(warehouse);
    }
  };

  const forecast = async (request: Partial<ForecastRequest> = {}) => {
    const warehouse = await liveWarehouse(path);
    const limits = sharedLimits({ settings, configuration });
    const asked = { projects: settings.projects, ...request };
    const forecasts = await forecastExport(warehouse, limits, settings, asked, clock.now());
    await closeNow(warehouse);
    return {
      requests: forecasts.reduce((sum, { requests }) => sum + requests, 0),
      finishingAt: forecasts[0]?.finishingAt,
    };
  };

  /** The error of the finishing time predicted now, as a share of the time that it takes. */
  const sayAndFinish = async (bounds: { from?: Day } = {}) => {
    const begun = clock.now();
    const before = platform.views.length;
    const said = await forecast(bounds);
    for (let resumeAt = await exportOnce(bounds); resumeAt !== undefined; resumeAt = await exportOnce(bounds))
      clock.advance(Math.max(0, resumeAt.getTime() - clock.now().getTime()));
    const took = differenceInMinutes(clock.now(), begun);
    const saidMinutes = differenceInMinutes(said.finishingAt ?? begun, begun);
    return { said: said.requests, sent: platform.views.length - before, took, saidMinutes };
  };
  return { clock, platform, settings, exportOnce, forecast, sayAndFinish };
}

describe('the predicted requests and finishing time are right', () => {
  test('before the first export of two projects that share a key', async () => {
    const { sayAndFinish, platform } = await openSite({ days: 140, pages: 5, projects: ['a', 'b'] });
    const { said, sent, took, saidMinutes } = await sayAndFinish();
    expect(Math.abs(sent - said)).toBeLessThanOrEqual(sent / 10);
    expect(Math.abs(took - saidMinutes)).toBeLessThanOrEqual(took / 10);
    expect(platform.busiestHour()).toBeLessThanOrEqual(100);
  });

  test('for three projects that do not finish together, at the end of an hour', async () => {
    const { clock, exportOnce, sayAndFinish } = await openSite({
      days: 33,
      pages: 501,
      projects: ['a', 'b', 'c'],
    });
    const resumeAt = await exportOnce();
    clock.advance((resumeAt?.getTime() ?? NaN) - clock.now().getTime());
    const { said, sent, took, saidMinutes } = await sayAndFinish();
    // A project that is done waits for the others: its days that may change are not read every hour.
    expect(Math.abs(sent - said)).toBeLessThanOrEqual(3);
    expect(saidMinutes).toBe(took);
  });

  test.each([
    { days: 26, pages: 1_001, projects: ['a', 'b', 'c'], kills: [] },
    { days: 365, pages: 5, projects: ['a', 'b'], kills: [40, Infinity, 70] },
  ])('at each stop of $days days, with kills after $kills requests', async ({ kills, ...site }) => {
    const { clock, exportOnce, forecast, platform } = await openSite(site);
    const stops: { at: Date; said: Date }[] = [];
    for (let process = 0; ; process++) {
      const resumeAt = await exportOnce({}, kills[process]);
      if (resumeAt === undefined) break;
      stops.push({ at: clock.now(), said: (await forecast()).finishingAt ?? expect.fail() });
      clock.advance(resumeAt.getTime() - clock.now().getTime());
    }
    const minutesTo = (from: Date) => differenceInMinutes(clock.now(), from);
    expect(stops.length).toBeGreaterThanOrEqual(site.days > 300 ? 8 : 3);
    for (const { at, said } of stops)
      expect(Math.abs(minutesTo(said))).toBeLessThanOrEqual(minutesTo(at) / 10);
    expect(platform.busiestHour()).toBeLessThanOrEqual(100);
    expect(platform.views.every(({ status }) => status === 200)).toBe(true);
  });

  test('for a usual night, and for an export later that day', async () => {
    const size = { days: 30, pages: 501, projects: ['a'] };
    const { clock, sayAndFinish } = await openSite(size);
    await sayAndFinish();
    // Spare requests are no part of a plan. They and the check are sent once a day.
    for (const [laterMs, spare] of [
      [DAY_MS, 5],
      [60 * MINUTE_MS, 0],
      [DAY_MS, 5],
    ] as const) {
      clock.advance(laterMs);
      const { said, sent, took, saidMinutes } = await sayAndFinish();
      expect(sent).toBe(said + spare);
      expect(saidMinutes).toBe(took);
    }
  });

  test('for an export of only some days, with --from', async () => {
    const { clock, sayAndFinish } = await openSite({ days: 60, pages: 251, projects: ['a', 'b'] });
    await sayAndFinish({ from: addDays(lastEndedDay(clock.now()), -1) });
    const from = addDays(lastEndedDay(clock.now()), -45);
    clock.advance(3 * MINUTE_MS);
    const { said, sent, took, saidMinutes } = await sayAndFinish({ from });
    expect(Math.abs(sent - said)).toBeLessThanOrEqual(sent / 10);
    expect(Math.abs(took - saidMinutes)).toBeLessThanOrEqual(took / 10);
  });
});

test('for a growing site, whose backfill crosses two nights, from its second hour on', async () => {
  const { clock, platform, exportOnce, sayAndFinish } = await openSite({
    days: 140,
    pages: (age) => 300 + 5 * age,
    projects: ['a'],
    limit: 10,
  });
  for (let hour = 0; hour < 2; hour++) {
    const resumeAt = await exportOnce();
    clock.advance((resumeAt?.getTime() ?? NaN) - clock.now().getTime());
  }
  const { said, sent, took, saidMinutes } = await sayAndFinish();
  expect(took).toBeGreaterThan(40 * 60);
  expect(Math.abs(sent - said)).toBeLessThanOrEqual(0.15 * sent);
  expect(Math.abs(took - saidMinutes)).toBeLessThanOrEqual(0.15 * took);
  expect(platform.busiestHour()).toBeLessThanOrEqual(10);
});
