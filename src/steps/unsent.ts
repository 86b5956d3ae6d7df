import { isSameRecipient } from '../config/recipients.js';
import { addDays } from '../day.js';
import { mayHaveArrived } from '../mail/delivery.js';
import { type Calendar, type Period, periodNamed, periodOf } from '../reports/period.js';
import type { State } from '../state/state.js';
import { deliveriesOf, type Mailing } from './mailing.js';

/** An email names no more periods than these, the newest. */
const MOST_NAMED = 8;

/**
 * The periods before this one that nobody was sent anything about, since the last one that somebody was: after weeks
 * offline, only the newest is emailed. The oldest first; none before the first email.
 */
export function unsentBefore(state: State, mailing: Mailing, { kind, first }: Period, calendar: Calendar) {
  const lastDays = deliveriesOf(state, mailing)
    .filter(mayHaveArrived)
    .filter(({ recipient }) => mailing.audience.to.some((to) => isSameRecipient(to, recipient)))
    .flatMap(({ period }) => periodNamed(period, calendar)?.last ?? [])
    .filter((last) => last < first);
  const newest = lastDays.toSorted().at(-1);
  const unsent: Period[] = [];
  // A report about agents says how everything stands now, whatever was sent before.
  if (newest === undefined || mailing.report.model === 'improve') return unsent;
  for (let end = addDays(first, -1); end > newest && unsent.length < MOST_NAMED;) {
    const period = periodOf(kind, end, calendar);
    unsent.unshift(period);
    end = addDays(period.first, -1);
  }
  return unsent;
}
