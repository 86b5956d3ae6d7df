import { Client } from '../api/client.js';
import { askForDate, skewOf, skewWords } from '../api/clock.js';
import { RefusedError } from '../api/errors.js';
import { LIMITS } from '../api/schema.js';
import type { Runtime } from '../app/workspace.js';
import { apiKeyOf, type Environment } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { settingsSchema } from '../config/schema.js';
import { addDays, lastEndedDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { nightlyRequests, requestsFor } from '../export/plan.js';
import { duration } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import { connectionFailure } from '../network.js';
import { fail, type Finding, pass, type Verdict, warn } from './findings.js';

/** Clocks closer than this agree. */
const MAX_SKEW_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAYS_A_YEAR = 365;
/** No platform gives a job this id. */
const NO_JOB = 'readership-doctor';

/**
 * Tries a platform before anything is configured, with three requests that change nothing: whether
 * it has the API, what the key may do, and what a history costs. Throws a `ConfigurationError`.
 */
export async function tryPlatform(
  url: string,
  id: string,
  environment: Environment,
  runtime: Runtime,
): Promise<Finding[]> {
  const { now, signal, output, workingDirectory } = runtime;
  const parsed = settingsSchema.safeParse({ baseUrl: url, projects: [{ id }] });
  const [project] = parsed.data?.projects ?? [];
  if (!parsed.success || project === undefined)
    throw new ConfigurationError(`--url: ${firstProblem(parsed.error)}`);
  const settings = parsed.data;
  const apiKey = apiKeyOf({ settings, environment, directory: workingDirectory }, project);
  output.hide([apiKey]);
  const options = { ...settings, projectId: id, apiKey, keyName: project.apiKeyEnv, now };
  const client = new Client({ ...options, retries: { retries: 0, minDelayMs: 0, maxDelayMs: 0 } });
  const { requestsPerHour, settleDays } = settings.history;
  const views = async (): Promise<Verdict> => {
    const day = lastEndedDay(now());
    const query = { dateFrom: day, dateTo: addDays(day, 1), limit: LIMITS.viewsPage.max, offset: 0 };
    const { totals, views: pages, hasMore } = await client.views(query, { signal });
    const least = pages.length + (hasMore ? 1 : 0);
    const [ofDay, ofNight] = [requestsFor(least), nightlyRequests(least, settleDays)];
    const ofYear = DAYS_A_YEAR * ofDay;
    const hours = requestsPerHour === 'unlimited' ? 0 : ofYear / requestsPerHour;
    const more = hasMore ? 'at least ' : '';
    return pass(
      `${day} has ${thousands(totals.human)} views by people and ${thousands(totals.ai)} by AI, of ${more}${counted(least, 'page')}. ` +
        `Such a day takes ${more}${counted(ofDay, 'request')}, a nightly export ${ofNight}, a year ${ofYear}: ${duration(hours * HOUR_MS)} at ${requestsPerHour} an hour`,
    );
  };
  const jobs = async (): Promise<Verdict> => {
    try {
      await client.job(NO_JOB, signal);
    } catch (error) {
      const status = error instanceof RefusedError ? error.status : undefined;
      if (status === 404)
        return pass(
          'answers 404 for a job that does not exist, as it should; permission to create jobs not checked',
        );
      return warn(`${messageOf(error)} Exports and reports work without agents.`);
    }
    return warn('answers for a job that does not exist: this may not be the documented API');
  };
  try {
    const verdict = await server(settings.baseUrl, runtime);
    const operations = [found('page views', views), found('agent jobs', jobs)];
    return [{ check: 'server', ...verdict }, ...(await Promise.all(operations))];
  } catch (error) {
    // Without an answer, there is nothing else to try.
    return [{ check: 'server', ...fail(messageOf(error)) }];
  } finally {
    await client.close();
  }
}

/** The result of one check, which fails with the message of what it throws. */
export async function found(check: string, examined: () => Verdict | Promise<Verdict>): Promise<Finding> {
  try {
    return { check, ...(await examined()) };
  } catch (error) {
    return { check, ...fail(messageOf(error)) };
  }
}

/**
 * Whether a server answers, and its clock agrees. Any answer will do, since it has a Date header.
 */
export async function server(baseUrl: string | undefined, { now, signal }: Runtime): Promise<Verdict> {
  if (baseUrl === undefined) return pass('the embedded sandbox, with the clock of this machine');
  const headers = await askForDate(baseUrl, signal).catch((cause: unknown) => {
    const words = `${baseUrl} does not answer (${connectionFailure(cause)}). Check the address and the network.`;
    throw new Error(words, { cause });
  });
  const skewMs = skewOf(headers, now());
  if (skewMs === undefined)
    return warn(`${baseUrl} answers without a readable Date: the clock was not checked.`);
  const apart = Math.abs(skewMs);
  if (apart < MAX_SKEW_MS) return pass(`${baseUrl} answers, and its clock agrees`);
  return (apart < 60 * MAX_SKEW_MS ? warn : fail)(skewWords(baseUrl, skewMs, now()));
}
