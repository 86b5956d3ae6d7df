import { addMinutes } from 'date-fns';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Client } from '../../src/api/client.js';
import type { Pace } from '../../src/api/pace.js';
import { DEFAULT_RETRIES } from '../../src/api/retry.js';
import type { PageViews } from '../../src/api/schema.js';
import { openPaces } from '../../src/app/platform.js';
import { bucketNameOf } from '../../src/config/load.js';
import { type ProjectSettings, settingsSchema } from '../../src/config/schema.js';
import { addDays, type Day, daysBetween, lastEndedDay } from '../../src/day.js';
import type { State } from '../../src/state/state.js';
import type { HistoryStore } from '../../src/history/store.js';
import { KEY, openClient } from '../api/open-client.js';
import { sleepingClock } from '../sleeping-clock.js';
import { stateBeside } from '../open-state.js';
import { closeNow, newStore } from '../open-history.js';
import { rowsOf, servePlatform } from '../platform.js';
import { tempDir } from '../temp-dir.js';
import { PROJECT, withOneMore } from './open-export.js';

export interface LimitedSiteOptions {
  readonly days: number;
  /** Of each day, or of a day so many days after the first one. */
  readonly pages: number | ((age: number) => number);
  readonly projects?: readonly string[];
  /** Requests an hour, those of others included; any number by default. */
  readonly limit?: number;
  /** The limit is for so long instead of an hour. */
  readonly limitMs?: number;
  /** Whether a refusal says how many seconds to wait. */
  readonly saysWhen?: boolean;
  /** Requests that others sent 20 minutes ago. */
  readonly othersUsed?: number;
  /** How long a request waits for the end of a pause. */
  readonly maxWaitMs?: number;
  readonly history?: object;
  /** Duration of a request, on the clock of the test. */
  readonly requestMs: number;
}

/** What a process of an export works with. */
interface Opened {
  readonly history: HistoryStore;
  readonly state: State;
  readonly clientOf: (project: { readonly id: string }) => Client;
}

/** Projects of one organization, each with its own key, on a platform that refuses requests above the limit. */
export async function limitedSite(options: LimitedSiteOptions) {
  const { days, pages, projects = [PROJECT], othersUsed = 0, history, requestMs } = options;
  const { limit, limitMs, saysWhen, maxWaitMs = 120_000 } = options;
  const clock = sleepingClock();
  const firstDay = addDays(lastEndedDay(clock.now()), 1 - days);
  const served = new Map<Day, readonly PageViews[]>();
  const original = (at: Day) =>
    at < firstDay ? [] : rowsOf(at, typeof pages === 'number' ? pages : pages(daysBetween(firstDay, at)));
  const platform = await servePlatform({
    now: clock.now,
    limit,
    limitMs,
    saysWhen,
    othersUsed: Array.from({ length: othersUsed }, () => addMinutes(clock.now(), -20)),
    rowsOf: (at) => {
      const rows = served.get(at) ?? original(at);
      served.set(at, rows);
      return rows;
    },
  });
  const written = {
    baseUrl: platform.baseUrl,
    projects: projects.map((id) => ({ id, apiKeyEnv: `KEY_OF_${id}` })),
    history,
  };
  const settings = settingsSchema.parse(written);
  const environment = Object.fromEntries(projects.map((id) => [`KEY_OF_${id}`, KEY]));
  const configuration = { settings, file: '', directory: '', environment };
  const path = join(await tempDir(), 'history.duckdb');

  let underWay = 0;
  const counting = (pace: Pace): Pace => ({
    mostRefusals: pace.mostRefusals,
    next: async (...given) => {
      const request = await pace.next(...given);
      underWay++;
      return request;
    },
    refused: (...given) => pace.refused(...given),
    answered: (request) => pace.answered(request),
    ended: (request) => {
      underWay--;
      pace.ended(request);
    },
  });
  /** Requests that are under way are answered before a pause is over: the platform answers at once. */
  const sleep = async (ms: number, signal?: AbortSignal) => {
    const until = clock.now().getTime() + ms;
    do await setImmediate();
    while (underWay > 0);
    await clock.sleep(Math.max(0, until - clock.now().getTime()), signal);
  };

  /** Does some work as a new process does it. */
  const inProcess = async <Result>(
    work: (opened: Opened) => Promise<Result>,
    onRequest: () => void = () => undefined,
  ): Promise<Result> => {
    const history = await newStore(path);
    const { state, close } = await stateBeside(history);
    const credentials = { bucketOf: (project: ProjectSettings) => bucketNameOf(project, environment) };
    const given = { settings, credentials, maxWaitMs };
    const paces = openPaces(state, given, { now: clock.now, sleep });
    const clients = new Map(
      settings.projects.map((project) => [
        project.id,
        openClient(platform.baseUrl, {
          projectId: project.id,
          now: clock.now,
          pace: counting(paces.of(project)),
          retries: { ...DEFAULT_RETRIES, minDelayMs: 1 },
          onRequest: () => {
            clock.advance(requestMs);
            onRequest();
          },
        }),
      ]),
    );
    const clientOf = ({ id }: { readonly id: string }) => clients.get(id) ?? expect.fail('no client');
    return work({ history, state, clientOf }).finally(async () => {
      await paces.record();
      await close();
      await closeNow(history);
    });
  };
  /** Adds one view to each of these days on the platform. */
  const restate = (restated: readonly Day[]) => {
    for (const at of restated) served.set(at, withOneMore(original(at)));
  };
  return { clock, platform, firstDay, written, settings, configuration, inProcess, restate };
}
