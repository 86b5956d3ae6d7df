import { addMilliseconds } from 'date-fns';
import { addDays, type DayRange, startOfDay } from '../day.js';
import type { MailAddress } from '../mail-address.js';
import { type Delivery, mayBeTried } from './delivery.js';

/** When the last day of a period can be there at the earliest: the nightly export runs at 02:15 by default. */
const EXPORT_TIME_MS = 2.25 * 3_600_000;
const HOUR_MS = 3_600_000;

/** A report of one period, and what is stored of it. */
export interface PeriodState {
  readonly period: DayRange;
  readonly days: number;
  readonly daysLoaded: number;
  readonly recipients: readonly MailAddress[];
  /** Those of this report, project and period. */
  readonly deliveries: readonly Delivery[];
}

/** What is to be done about a report now. */
export type Due =
  | { readonly kind: 'due'; readonly recipients: readonly MailAddress[] }
  /** For its missing days, until they are loaded or patience is over. */
  | { readonly kind: 'waits'; readonly missingDays: number; readonly until: Date }
  /** Every recipient has had it, is to be tried again later, or never. */
  | { readonly kind: 'nothing' };

/**
 * Who is due a report now: everyone not yet attempted, and those whose next attempt has come, once the period's days
 * are all loaded or `patienceHours` have passed since they could have been. A period without any day has nothing to
 * say, however long it takes.
 */
export function whatIsDue(
  { period, days, daysLoaded, recipients, deliveries }: PeriodState,
  patienceHours: number,
  now: Date,
): Due {
  const open = recipients.filter((recipient) =>
    mayBeTried(
      deliveries.find((delivery) => delivery.recipient === recipient),
      'due',
      now,
    ),
  );
  if (open.length === 0) return { kind: 'nothing' };
  const ended = startOfDay(addDays(period.last, 1));
  const until = addMilliseconds(ended, EXPORT_TIME_MS + patienceHours * HOUR_MS);
  const isReady = daysLoaded === days || (daysLoaded > 0 && now >= until);
  return isReady
    ? { kind: 'due', recipients: open }
    : { kind: 'waits', missingDays: days - daysLoaded, until };
}
