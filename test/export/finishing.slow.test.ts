import { addMinutes, differenceInMinutes } from 'date-fns';
import { describe, expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { sharedLimits } from '../../src/app/credentials.js';
import { addDays, type Day, lastEndedDay } from '../../src/day.js';
import { forecastExport, type ForecastRequest } from '../../src/export/forecast.js';
import { exportStep } from '../../src/steps/export.js';
import { DAY_MS, MINUTE_MS, sleepingClock } from '../budget/open-budget.js';
import { partsOf } from '../steps/parts-of.js';
import { limitedSite, type LimitedSiteOptions } from './limited-site.js';

/** Projects of one organization, as they are exported by one process after another. */
async function openSite({ history, ...size }: Omit<LimitedSiteOptions, 'requestMs'>) {
  const start = addDays(lastEndedDay(sleepingClock().now()), 1 - size.days);
  const site = await limitedSite({ ...size, history: { start, ...history }, requestMs: 50 });
  const { clock, platform, settings, configuration, inProcess } = site;
  const limits = sharedLimits(settings, configuration.environment);

  /** Exports in a new process until the budget or a kill stops it. Returns when it may resume. */
  const exportOnce = (bounds: { from?: Day } = {}, killedAfter = Infinity): Promise<Date | undefined> => {
    const kill = new AbortController();
    let sent = 0;
    const onRequest = () => {
      if (++sent >= killedAfter) kill.abort(new Error('killed'));
    };
    return inProcess(async ({ warehouse, clientOf }) => {
      const parts = partsOf(warehouse, {
        settings: site.written,
        workspace: { projects: settings.projects },
        platform: { limits, clientOf },
        session: { now: clock.now, signal: kill.signal },
      });
      const { error } = await exportStep(parts, bounds);
      if (kill.signal.aborted) return addMinutes(clock.now(), 1);
      if (error instanceof PausedError) return error.resumeAt;
      expect(error).toBeUndefined();
      return undefined;
    }, onRequest);
  };

  const forecast = async (request: Partial<ForecastRequest> = {}) => {
    const asked = { projects: settings.projects, ...request };
    const forecasts = await inProcess(({ warehouse }) =>
      forecastExport(warehouse, limits, settings, asked, clock.now()),
    );
    const requests = forecasts.reduce((sum, one) => sum + one.requests, 0);
    return { requests, finishingAt: forecasts[0]?.finishingAt };
  };
  const waitUntil = (at: Date | undefined) => {
    clock.advance(Math.max(0, (at?.getTime() ?? NaN) - clock.now().getTime()));
  };

  /** The error of the finishing time predicted now, as a share of the time that it takes. */
  const sayAndFinish = async (bounds: { from?: Day } = {}) => {
    const begun = clock.now();
    const before = platform.views.length;
    const said = await forecast(bounds);
    for (let resumeAt = await exportOnce(bounds); resumeAt !== undefined; resumeAt = await exportOnce(bounds))
      waitUntil(resumeAt);
    const took = differenceInMinutes(clock.now(), begun);
    const saidMinutes = differenceInMinutes(said.finishingAt ?? begun, begun);
    return { said: said.requests, sent: platform.views.length - before, took, saidMinutes };
  };
  return { clock, platform, exportOnce, waitUntil, forecast, sayAndFinish };
}

describe('the predicted requests and finishing time are about right', () => {
  test('before the first export of two projects that share a key', async () => {
    const { sayAndFinish, platform } = await openSite({ days: 140, pages: 5, projects: ['a', 'b'] });
    const { said, sent, took, saidMinutes } = await sayAndFinish();
    expect(Math.abs(sent - said)).toBeLessThanOrEqual(sent / 10);
    expect(Math.abs(took - saidMinutes)).toBeLessThanOrEqual(took / 10);
    expect(platform.busiestHour()).toBeLessThanOrEqual(100);
  });

  test('for three projects that do not finish together, at the end of an hour', async () => {
    const size = { days: 33, pages: 501, projects: ['a', 'b', 'c'] };
    const { exportOnce, waitUntil, sayAndFinish } = await openSite(size);
    waitUntil(await exportOnce());
    const { said, sent, took, saidMinutes } = await sayAndFinish();
    // A project that is done waits for the others: its days that may change are not read every hour.
    expect(Math.abs(sent - said)).toBeLessThanOrEqual(3);
    expect(Math.abs(took - saidMinutes)).toBeLessThanOrEqual(took / 10);
  });

  test.each([
    { days: 26, pages: 1_001, projects: ['a', 'b', 'c'], kills: [] },
    { days: 365, pages: 5, projects: ['a', 'b'], kills: [40, Infinity, 70] },
  ])('at each stop of $days days, with kills after $kills requests', async ({ kills, ...site }) => {
    const { clock, exportOnce, waitUntil, forecast, platform } = await openSite(site);
    const stops: { at: Date; said: Date }[] = [];
    for (let process = 0; ; process++) {
      const resumeAt = await exportOnce({}, kills[process]);
      if (resumeAt === undefined) break;
      stops.push({ at: clock.now(), said: (await forecast()).finishingAt ?? expect.fail() });
      waitUntil(resumeAt);
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
    for (const laterMs of [DAY_MS, 60 * MINUTE_MS, DAY_MS]) {
      clock.advance(laterMs);
      const { said, sent, took, saidMinutes } = await sayAndFinish();
      expect(sent).toBe(said);
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
  const { platform, exportOnce, waitUntil, sayAndFinish } = await openSite({
    days: 140,
    pages: (age) => 300 + 5 * age,
    projects: ['a'],
    limit: 10,
  });
  for (let hour = 0; hour < 2; hour++) waitUntil(await exportOnce());
  const { said, sent, took, saidMinutes } = await sayAndFinish();
  expect(took).toBeGreaterThan(40 * 60);
  // Older days are expected to be like the oldest that was read.
  expect(Math.abs(sent - said)).toBeLessThanOrEqual(0.3 * sent);
  expect(Math.abs(took - saidMinutes)).toBeLessThanOrEqual(0.3 * took);
  expect(platform.busiestHour()).toBeLessThanOrEqual(10);
});
