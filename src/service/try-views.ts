import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import { LIMITS, type ViewsResponse } from '../api/schema.js';
import type { Settings } from '../config/schema.js';
import { addDays, type Day } from '../day.js';
import { messageOf } from '../errors.js';
import { expectAdditive } from '../export/additivity.js';
import { EARLIEST_DAY } from '../export/range.js';
import { smallerLimit } from '../export/page-size.js';
import { nightlyRequests, requestsFor } from '../export/plan.js';
import { equalCounts, sumCounts } from '../export/totals.js';
import { probeTotals } from '../export/probe.js';
import { counted, thousands } from '../format/numbers.js';
import { type CheckResult, fail, found, pass, type Verdict, warn } from './findings.js';

const DAYS_A_YEAR = 365;

/** Tries the views of yesterday: a first page, a second one, the sums of days, and an old range. */
export async function tryViews(
  client: Client,
  { history: { settleDays } }: Settings,
  yesterday: Day,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  const page: ReadPage = (offset, limit) =>
    client.views({ dateFrom: yesterday, dateTo: addDays(yesterday, 1), limit, offset }, { signal });
  let first: FirstPage;
  try {
    first = await readFirstPage(page);
  } catch (error) {
    return [{ check: 'page views', ...fail(messageOf(error)) }];
  }
  return [
    { check: 'page views', ...pass(`${yesterday} has ${costWords(first, settleDays)}`) },
    await found('second page', () => secondPageVerdict(first, page)),
    await found('sums of days', async () => {
      await expectAdditive(client, addDays(yesterday, -1), { signal });
      return pass('the totals of days add up to those of their range');
    }),
    await found('old days', () => oldDaysVerdict(client, yesterday, signal)),
  ];
}

/** Reads a page of so many rows at most. */
type ReadPage = (offset: number, limit: number) => Promise<ViewsResponse>;

interface FirstPage extends ViewsResponse {
  /** Whether its rows account for all views. */
  readonly isWhole: boolean;
  /** How many rows the platform returns at once. */
  readonly pageSize: number;
}

/** The first page, with fewer rows if the platform refuses the documented limit, as exports do. */
async function readFirstPage(page: ReadPage): Promise<FirstPage> {
  const { max } = LIMITS.viewsPage;
  const response = await page(0, max).catch((error: unknown) => {
    const smaller = smallerLimit(error, max);
    if (smaller === undefined) throw error;
    return page(0, smaller);
  });
  const { totals, views } = response;
  const isWhole = equalCounts(sumCounts(views), totals);
  return { ...response, isWhole, pageSize: isWhole ? max : Math.max(1, views.length) };
}

/** The views of a day, and what the export of such days costs. */
function costWords({ totals, views, isWhole, pageSize }: FirstPage, settleDays: number): string {
  const least = views.length + (isWhole ? 0 : 1);
  const [ofDay, ofNight] = [requestsFor(least, pageSize), nightlyRequests(least, settleDays, pageSize)];
  const more = isWhole ? '' : 'at least ';
  return (
    `${thousands(totals.human)} views by people and ${thousands(totals.ai)} by AI, of ${more}${counted(least, 'page')}. ` +
    `Such a day takes ${more}${counted(ofDay, 'request')}, a nightly export ${ofNight}, a year ${DAYS_A_YEAR * ofDay}`
  );
}

async function secondPageVerdict({ views, isWhole, pageSize }: FirstPage, page: ReadPage): Promise<Verdict> {
  if (views.length < 2) return pass('not checked: too few rows');
  const offset = isWhole ? Math.ceil(views.length / 2) : views.length;
  const { views: more } = await page(offset, pageSize);
  if (more.length === 0) return fail(`offset ${offset} returns no rows, although there are more`);
  const before = new Set(views.slice(0, offset).map(({ path }) => path));
  const repeated = more.filter(({ path }) => before.has(path)).length;
  if (repeated === 0) return pass(`offset ${offset} continues where the first page ends`);
  return warn(
    `offset ${offset} repeats ${counted(repeated, 'row')}; exports read such days until they add up`,
  );
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
