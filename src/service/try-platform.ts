import { Client } from '../api/client.js';
import { skewOf, skewWords } from '../api/clock.js';
import { ApiError, RefusedError, TryLaterError } from '../api/errors.js';
import type { ViewsResponse } from '../api/schema.js';
import { Transport } from '../api/transport.js';
import type { Runtime } from '../app/workspace.js';
import { apiKeyOf, type Environment } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { type Settings, settingsSchema } from '../config/schema.js';
import { isInTheClear } from '../config/values.js';
import { addDays, type Day, lastEndedDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { PageSize, smallerLimit } from '../export/page-size.js';
import { mayHaveMore } from '../export/pages.js';
import { nightlyRequests, requestsFor } from '../export/plan.js';
import { EARLIEST_DAY } from '../export/first-day.js';
import {
  equalCounts,
  INCLUSIVE,
  NO_VIEWS,
  probeTotals,
  sumCounts,
  totalsIfAnswered,
} from '../export/totals.js';
import { duration } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import { connectionFailure, type ResponseHeaders } from '../network.js';
import { fail, type CheckResult, found, pass, type Verdict, warn } from './findings.js';

const HOUR_MS = 3_600_000;
const DAYS_A_YEAR = 365;
/** No platform has a job with this id, or a path with this name. */
const NOTHING = 'readership-doctor';

/**
 * Tries a platform before anything is configured, with six requests that change nothing: whether it
 * has the API, what the key may do, and what a history costs. Throws a `ConfigurationError`.
 */
export async function tryPlatform(
  url: string,
  id: string,
  environment: Environment,
  { now, signal, output }: Runtime,
): Promise<CheckResult[]> {
  if (isInTheClear(url))
    throw new ConfigurationError('--url would send the API key unencrypted: write https://…');
  const parsed = settingsSchema.safeParse({ baseUrl: url, projects: [{ id }] });
  const [project] = parsed.data?.projects ?? [];
  if (!parsed.success || project === undefined)
    throw new ConfigurationError(`--url: ${firstProblem(parsed.error)}`);
  const settings = parsed.data;
  const { baseUrl } = settings;
  const apiKey = apiKeyOf({ environment }, project);
  output.hide([apiKey]);
  output.note(`Trying ${baseUrl} with up to six requests, which change nothing.`);
  let headers: ResponseHeaders = {};
  const transport = new Transport({ onHeaders: (received) => (headers = received) });
  const clientAt = (baseUrl: string) =>
    new Client({
      baseUrl,
      projectId: id,
      apiKey,
      keyName: project.apiKeyEnv,
      now,
      retries: { retries: 0, minDelayMs: 0, maxDelayMs: 0 },
      transport,
    });
  const client = clientAt(baseUrl);
  try {
    const ofPath = await refusalOf(clientAt(`${baseUrl}/${NOTHING}`), signal);
    return [
      { check: 'server', ...answers(baseUrl, headers, now()) },
      ...(await tryViews(client, settings, lastEndedDay(now()), signal)),
      await found('agent jobs', async () => jobsVerdict(await refusalOf(client, signal), ofPath)),
    ];
  } catch (error) {
    // Without an answer, there is nothing else to try.
    if (!(error instanceof TryLaterError)) throw error;
    return [{ check: 'server', ...doesNotAnswer(baseUrl, error.cause) }];
  } finally {
    await transport.close();
  }
}

/** How the platform refuses to show a job that does not exist; undefined if it shows one. Throws if it does not answer. */
async function refusalOf(client: Client, signal: AbortSignal): Promise<ApiError | undefined> {
  try {
    await client.job(NOTHING, signal);
    return undefined;
  } catch (error) {
    const isAnswer =
      error instanceof ApiError && !(error instanceof TryLaterError && error.cause !== undefined);
    if (isAnswer) return error;
    throw error;
  }
}

function jobsVerdict(ofJob: ApiError | undefined, ofPath: ApiError | undefined): Verdict {
  if (ofJob === undefined)
    return warn('answers for a job that does not exist: this may not be the documented API');
  if (!(ofJob instanceof RefusedError) || ofJob.status !== 404)
    return warn(`${ofJob.message} Exports and reports work without agents.`);
  if (ofPath instanceof RefusedError && ofPath.status === 404 && wordsOf(ofPath) === wordsOf(ofJob))
    return warn(
      'not checked: the platform gives the same answer for a path that does not exist. Exports and reports work without agents.',
    );
  return pass('returned 404 for a made-up job, as expected. Not checked: permission to create jobs.');
}

/** The server's words without the address, which many servers repeat. */
const wordsOf = ({ words }: RefusedError): string =>
  words.replaceAll(/\S*\/\S*/g, '').replaceAll(NOTHING, '');

/** Tries the views of yesterday: a first page, a second one, the sums of days, and an old range. */
async function tryViews(
  client: Client,
  settings: Settings,
  yesterday: Day,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  const pageSize = new PageSize();
  const most = pageSize.rows;
  const page = (offset: number) =>
    client.views(
      { dateFrom: yesterday, dateTo: addDays(yesterday, 1), limit: pageSize.rows, offset },
      { signal },
    );
  let first: ViewsResponse;
  try {
    first = await page(0).catch((error: unknown) => {
      // The request for a second page is spent on a smaller one.
      const smaller = smallerLimit(error, most);
      if (smaller === undefined) throw error;
      pageSize.rows = smaller;
      return page(0);
    });
  } catch (error) {
    return [{ check: 'page views', ...fail(messageOf(error)) }];
  }
  const { totals, views } = first;
  const isWhole = equalCounts(sumCounts(views), totals);
  const hasMore = !isWhole && mayHaveMore(first, pageSize);
  const isRefused = pageSize.rows < most;
  const isCapped = hasMore && views.length < pageSize.rows;
  if (isCapped) pageSize.rows = Math.max(1, views.length);
  const size = (): Verdict => {
    if (isRefused) return warn(`refuses a limit of ${most}; exports request ${pageSize.rows} rows at once`);
    if (isCapped)
      return warn(`returns ${views.length} rows at once instead of ${most}; exports adapt to that`);
    return pass(`accepts a limit of ${most}`);
  };
  const second = async (): Promise<Verdict> => {
    if (first.hasMore && isWhole)
      return warn('says that more rows follow the last one; exports end when the rows add up');
    const offset = hasMore ? views.length : Math.ceil(views.length / 2);
    if (isRefused || views.length < 2) return pass('not checked: too few rows, or no request left');
    const { views: more } = await page(offset);
    if (more.length === 0) return fail(`offset ${offset} returns no rows, although there are more`);
    const before = new Set(views.slice(0, offset).map(({ path }) => path));
    const repeated = more.filter(({ path }) => before.has(path)).length;
    if (repeated === 0) return pass(`offset ${offset} continues where the first page ends`);
    const rows = counted(repeated, 'row');
    return warn(`offset ${offset} repeats ${rows}; exports read such days until they add up`);
  };
  const sums = async (): Promise<Verdict> => {
    if (totals.total === 0) return pass('not checked, because yesterday has no views');
    const range = { first: yesterday, last: addDays(yesterday, -1) };
    const none = await totalsIfAnswered(client, range, { signal });
    if (none === undefined)
      return pass('not checked: it refuses a range without days. The first export checks it');
    return equalCounts(none, NO_VIEWS)
      ? pass('dateTo is excluded, as expected')
      : fail(`${INCLUSIVE}. Exports refuse such a platform`);
  };
  const old = async (): Promise<Verdict> => {
    const range = { first: EARLIEST_DAY, last: addDays(yesterday, -1) };
    try {
      const { total } = await probeTotals(client, range, { signal });
      return pass(
        `one request covers all days since ${EARLIEST_DAY}: ${thousands(total)} views before ${yesterday}`,
      );
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      const { status, words } = error;
      return warn(
        `refuses days since ${EARLIEST_DAY} (${status}${words}); the first export finds the days that it keeps`,
      );
    }
  };
  return [
    { check: 'page views', ...viewsVerdict({ ...first, hasMore }, settings, yesterday, pageSize.rows) },
    await found('page size', size),
    await found('second page', second),
    await found('sums of days', sums),
    await found('old days', old),
  ];
}

/** What the export of such days costs, and whether the rows of a whole day add up. */
function viewsVerdict(
  { totals, views, hasMore }: ViewsResponse,
  { history: { requestsPerHour, settleDays } }: Settings,
  day: Day,
  pageSize: number,
): Verdict {
  if (!hasMore && !equalCounts(sumCounts(views), totals))
    return warn(
      `the first page of ${day} has ${thousands(sumCounts(views).total)} of ${thousands(totals.total)} views, and the platform says that none follows: exports read on, and mark a day that still does not add up`,
    );
  const least = views.length + (hasMore ? 1 : 0);
  const [ofDay, ofNight] = [requestsFor(least, pageSize), nightlyRequests(least, settleDays, pageSize)];
  const ofYear = DAYS_A_YEAR * ofDay;
  const hours = requestsPerHour === 'unlimited' ? 0 : ofYear / requestsPerHour;
  const more = hasMore ? 'at least ' : '';
  return pass(
    `${day} has ${thousands(totals.human)} views by people and ${thousands(totals.ai)} by AI, of ${more}${counted(least, 'page')}. ` +
      `Such a day takes ${more}${counted(ofDay, 'request')}, a nightly export ${ofNight}, a year ${ofYear}: ${duration(hours * HOUR_MS)} at ${requestsPerHour} an hour`,
  );
}

/** Clocks closer than this agree. */
const MAX_SKEW_MS = 60_000;

/** A server that answered with these headers, and whether its clock agrees. */
export function answers(baseUrl: string, headers: ResponseHeaders, now: Date): Verdict {
  const skewMs = skewOf(headers, now);
  if (skewMs === undefined)
    return warn(`${baseUrl} answers without a readable Date: the clock was not checked.`);
  const apart = Math.abs(skewMs);
  if (apart < MAX_SKEW_MS) return pass(`${baseUrl} answers, and its clock agrees`);
  return (apart < 60 * MAX_SKEW_MS ? warn : fail)(skewWords(baseUrl, skewMs, now));
}

export const doesNotAnswer = (baseUrl: string, cause: unknown): Verdict =>
  fail(`${baseUrl} does not answer (${connectionFailure(cause)}). Check the address and the network.`);
