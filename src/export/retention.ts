import { z } from 'zod';
import type { ViewCounts } from '../api/schema.js';
import { addDays, type Day, day, daysBetween, lastEndedDay } from '../day.js';
import type { StoredDay } from '../history/days.js';
import { forgetFailuresBefore } from '../state/days.js';
import { type PlatformFact, readFact, recordFact } from '../state/platform.js';
import { DISAGREEMENT } from './paging.js';
import type { ExportedProject } from './failures.js';
import { equalCounts, NO_VIEWS } from './totals.js';
import { largest, totalsIfAnswered, viewsIn } from './probe.js';

/** The first day that the platform still has, although it once had earlier ones, or answers for later ones only. */
export const KEPT_FROM: PlatformFact<Day> = {
  name: 'kept from',
  value: z.string().transform(day),
  isLimit: true,
};

/** So close to the first day that it keeps, a platform may be deleting views. */
const EDGE_DAYS = 10;

/** Views of days that ended more recently are never deleted: no platform keeps less than a week. */
const SHORTEST_KEPT_DAYS = 6;

/** Whether a day is so old that a platform may have deleted views of it. */
const mayBeDeleted = (day: Day, now: Date): boolean =>
  daysBetween(day, lastEndedDay(now)) >= SHORTEST_KEPT_DAYS;

/** Whether the platform has fewer views of a stored day, of any kind. */
export const isSmaller = (platform: ViewCounts, stored: ViewCounts): boolean =>
  platform.human < stored.human || platform.ai < stored.ai || platform.total < stored.total;

/** A stored day of which the platform now has fewer views. */
interface SmallerDay {
  readonly day: Day;
  readonly platform: ViewCounts;
  /** Whether the day has settled. Others are read again each night. */
  readonly isSettled: boolean;
  /** Whether the platform already had fewer views in an earlier night. */
  readonly wasSmaller: boolean;
}

type Judgment = 'deleted' | 'unconfirmed' | 'corrected';

/**
 * What it means that the platform has fewer views of a day than are stored. Views that it deleted are kept: `keptFrom` is the
 * first day that it keeps, if it was seen to delete days. A correction is stored, of a settled day once it was seen on two
 * nights.
 */
export function judgeSmaller(
  { day, platform, isSettled, wasSmaller }: SmallerDay,
  keptFrom: Day | undefined,
  now: Date,
): Judgment {
  const isOld = mayBeDeleted(day, now);
  if (isOld && keptFrom !== undefined && day < addDays(keptFrom, EDGE_DAYS)) return 'deleted';
  if (isOld && equalCounts(platform, NO_VIEWS)) return 'deleted';
  return wasSmaller || !isSettled ? 'corrected' : 'unconfirmed';
}

/** Where the days begin that the platform keeps. It is asked at most once, and only if that is needed. */
export class Retention {
  #keptFrom: Promise<Day | undefined> | undefined;

  constructor(private readonly task: ExportedProject) {}

  /** The first day that the platform keeps; undefined if it still has the oldest stored day, or if none is old. */
  keptFrom(): Promise<Day | undefined> {
    return (this.#keptFrom ??= this.#find());
  }

  /** Whether the platform no longer keeps a day. */
  async isDeleted(day: Day): Promise<boolean> {
    if (!mayBeDeleted(day, this.task.now())) return false;
    const keptFrom = await this.keptFrom();
    return keptFrom !== undefined && day < keptFrom;
  }

  /** As `judgeSmaller`. */
  async judge(found: SmallerDay): Promise<Judgment> {
    const now = this.task.now();
    const keptFrom = mayBeDeleted(found.day, now) ? await this.keptFrom() : undefined;
    return judgeSmaller(found, keptFrom, now);
  }

  /** Days are deleted oldest first, so a few requests show which is the last one that is no longer whole. */
  async #find(): Promise<Day | undefined> {
    const { history, state, project, now } = this.task;
    const known = readFact(state, project, KEPT_FROM, now());
    const stored = [...(await history.storedDays(project)).values()]
      .filter((one) => !equalCounts(one, NO_VIEWS) && mayBeDeleted(one.day, now()))
      .sort((one, other) => daysBetween(other.day, one.day));
    const older = stored.filter(({ day }) => known !== undefined && day < known);
    const younger = stored.slice(older.length);
    const isGone = (count: number) => this.#isGone(younger[count - 1]);
    const gone = await largest(isGone, 1, younger.length);
    const last = younger[gone - 1] ?? older.at(-1);
    if (last === undefined) return undefined;
    const after = addDays(last.day, 1);
    const first = known !== undefined && known > after ? known : after;
    const end = younger[gone]?.day ?? addDays(lastEndedDay(now()), 1 - SHORTEST_KEPT_DAYS);
    // Of the days up to the next stored one, the platform may have none either.
    const isEmpty = (days: number) => this.#isEmpty(first, addDays(first, days - 1));
    const keptFrom = addDays(first, await largest(isEmpty, 1, Math.max(0, daysBetween(first, end))));
    if (keptFrom !== known) {
      await recordFact(state, project, KEPT_FROM, keptFrom, now());
      await forgetFailuresBefore(state, project, keptFrom);
    }
    return keptFrom;
  }

  async #isGone(stored: StoredDay | undefined): Promise<boolean> {
    if (stored === undefined) return false;
    const { client, signal } = this.task;
    const { day } = stored;
    const platform = await totalsIfAnswered(client, { first: day, last: day }, { signal });
    if (platform === undefined || equalCounts(platform, NO_VIEWS)) return true;
    return isSmaller(platform, stored) && !this.#hasPageTotals();
  }

  /** Whether totals say only that there are some views. */
  #hasPageTotals(): boolean {
    const { state, project, now } = this.task;
    return readFact(state, project, DISAGREEMENT, now()) === 'page totals';
  }

  /** Whether the platform has no views of any day of a range. It may refuse the range because of its first days. */
  async #isEmpty(first: Day, last: Day): Promise<boolean> {
    const { client, signal } = this.task;
    const views = await viewsIn(client, { first, last }, { signal });
    if (views !== 'refused' || first === last) return views !== 'some';
    return (await viewsIn(client, { first: last, last }, { signal })) !== 'some';
  }
}
