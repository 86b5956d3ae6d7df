import type { MailAddress } from '../mail-address.js';
import { type Delivery, mayBeTried } from './delivery.js';

/** A report of one period, and what is stored of it. */
export interface PeriodState {
  readonly days: number;
  readonly daysLoaded: number;
  /** When patience with missing days is over. */
  readonly until: Date;
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
 * are all loaded or patience with them is over. A period without any day has nothing to say, however long it takes.
 */
export function whatIsDue({ days, daysLoaded, until, recipients, deliveries }: PeriodState, now: Date): Due {
  const open = recipients.filter((recipient) =>
    mayBeTried(
      deliveries.find((delivery) => delivery.recipient === recipient),
      'due',
      now,
    ),
  );
  if (open.length === 0) return { kind: 'nothing' };
  const isReady = daysLoaded === days || (daysLoaded > 0 && now >= until);
  return isReady
    ? { kind: 'due', recipients: open }
    : { kind: 'waits', missingDays: days - daysLoaded, until };
}
