import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import { LIMITS, type ViewsResponse } from '../api/schema.js';
import type { Settings } from '../config/schema.js';
import { addDays, type Day } from '../day.js';
import { messageOf } from '../errors.js';
import { INCLUSIVE, probeTotals, totalsIfAnswered } from '../export/probe.js';
import { type Disagreement, DISAGREEMENT_WORDS, smallerLimit } from '../export/paging.js';
import { EARLIEST_DAY } from '../export/range.js';
import { mayHaveMore } from '../export/pages-of-day.js';
import { nightlyRequests, requestsFor } from '../export/plan.js';
import { equalCounts, NO_VIEWS, sumCounts } from '../export/totals.js';
import { counted, thousands } from '../format/numbers.js';
import { type CheckResult, fail, found, pass, type Verdict, warn } from './findings.js';

const DAYS_A_YEAR = 365;

/** Tries the views of yesterday: a first page, a second one, the sums of days, and an old range. */
export async function tryViews(
  client: Client,
  settings: Settings,
  yesterday: Day,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  const page = (offset: number, limit: number) =>
    client.views({ dateFrom: yesterday, dateTo: addDays(yesterday, 1), limit, offset }, { signal });
  let first: FirstPage;
  try {
    first = await readFirstPage(page);
  } catch (error) {
    return [{ check: 'page views', ...fail(messageOf(error)) }];
  }
  const { response, hasMore, pageSize } = first;
  return [
    { check: 'page views', ...viewsVerdict({ ...response, hasMore }, settings, yesterday, pageSize) },
    await found('page size', () => sizeVerdict(first)),
    await found('second page', () => secondPageVerdict(first, page)),
    await found('sums of days', () => sumsVerdict(client, response, yesterday, signal)),
    await found('old days', () => oldDaysVerdict(client, yesterday, signal)),
  ];
}

/** Reads a page of so many rows at most. */
type ReadPage = (offset: number, limit: number) => Promise<ViewsResponse>;

/** The first page, and what it shows of the others. */
type FirstPage = Awaited<ReturnType<typeof readFirstPage>>;

async function readFirstPage(page: ReadPage) {
  let asked: number = LIMITS.viewsPage.max;
  const response = await page(0, asked).catch((error: unknown) => {
    // The request for a second page is spent on a smaller one.
    const smaller = smallerLimit(error, asked);
    if (smaller === undefined) throw error;
    asked = smaller;
    return page(0, smaller);
  });
  const { totals, views } = response;
  const isWhole = equalCounts(sumCounts(views), totals);
  const hasMore = !isWhole && mayHaveMore(response, { rows: asked });
  const isCut = hasMore && views.length < asked;
  return {
    response,
    /** Whether rows must follow, whatever the platform says. */
    hasMore,
    /** What happened to the documented limit. */
    limit: asked < LIMITS.viewsPage.max ? 'refused' : isCut ? 'cut' : 'accepted',
    /** How many rows the platform returns at once. */
    pageSize: isCut ? Math.max(1, views.length) : asked,
  } as const;
}

function sizeVerdict({ response: { views }, limit, pageSize }: FirstPage): Verdict {
  const most = LIMITS.viewsPage.max;
  if (limit === 'refused')
    return warn(`refuses a limit of ${most}; exports request ${pageSize} rows at once`);
  if (limit === 'cut')
    return warn(`returns ${views.length} rows at once instead of ${most}; exports adapt to that`);
  return pass(`accepts a limit of ${most}`);
}

async function secondPageVerdict(
  { response: { views, hasMore: isSaid, totals }, hasMore, limit, pageSize }: FirstPage,
  page: ReadPage,
): Promise<Verdict> {
  if (isSaid && equalCounts(sumCounts(views), totals))
    return warn(DISAGREEMENT_WORDS[await disagreementOf(views, () => page(views.length, pageSize))]);
  const offset = hasMore ? views.length : Math.ceil(views.length / 2);
  if (limit === 'refused' || views.length < 2) return pass('not checked: too few rows, or no request left');
  const { views: more } = await page(offset, pageSize);
  if (more.length === 0) return fail(`offset ${offset} returns no rows, although there are more`);
  const before = new Set(views.slice(0, offset).map(({ path }) => path));
  const repeated = more.filter(({ path }) => before.has(path)).length;
  if (repeated === 0) return pass(`offset ${offset} continues where the first page ends`);
  return warn(
    `offset ${offset} repeats ${counted(repeated, 'row')}; exports read such days until they add up`,
  );
}

/** What is wrong if the rows of a first page add up to the totals, and more are said to follow. */
async function disagreementOf(
  views: ViewsResponse['views'],
  next: () => Promise<ViewsResponse>,
): Promise<Disagreement> {
  const known = new Set(views.map(({ path }) => path));
  const isNew = (await next()).views.some(({ path, total }) => total > 0 && !known.has(path));
  return isNew ? 'page totals' : 'always more';
}

async function sumsVerdict(
  client: Client,
  { totals }: ViewsResponse,
  yesterday: Day,
  signal: AbortSignal,
): Promise<Verdict> {
  if (totals.total === 0) return pass('not checked, because yesterday has no views');
  const none = await totalsIfAnswered(client, { first: yesterday, last: addDays(yesterday, -1) }, { signal });
  if (none === undefined)
    return pass('not checked: it refuses a range without days. The first export checks it');
  return equalCounts(none, NO_VIEWS)
    ? pass('dateTo is excluded, as expected')
    : fail(`${INCLUSIVE}. Exports refuse such a platform`);
}

async function oldDaysVerdict(client: Client, yesterday: Day, signal: AbortSignal): Promise<Verdict> {
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
}

/** What the export of such days costs, and whether the rows of a whole day add up. */
function viewsVerdict(
  { totals, views, hasMore }: ViewsResponse,
  { history: { settleDays } }: Settings,
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
  const more = hasMore ? 'at least ' : '';
  return pass(
    `${day} has ${thousands(totals.human)} views by people and ${thousands(totals.ai)} by AI, of ${more}${counted(least, 'page')}. ` +
      `Such a day takes ${more}${counted(ofDay, 'request')}, a nightly export ${ofNight}, a year ${ofYear}`,
  );
}
