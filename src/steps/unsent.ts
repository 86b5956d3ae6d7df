import { isSameRecipient } from '../config/recipients.js';
import { addDays } from '../day.js';
import { ALL_PROJECTS, mayBeTried, mayHaveArrived } from '../mail/delivery.js';
import { type Calendar, type Period, periodNamed, periodOf } from '../reports/period.js';
import { type Delivery, readDeliveries } from '../state/emails.js';
import type { State } from '../state/state.js';
import { deliveriesOf, type Mailing } from './mailing.js';
import type { WorkspaceView } from './parts.js';

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

/**
 * The emails that were only written to a file, and are sent once there is a mail server: about the last period that their
 * report was written or sent about, to those who are still to get them.
 */
export function readWritten(
  state: State,
  { settings, projects }: Pick<WorkspaceView, 'settings' | 'projects'>,
  now: Date,
): Delivery[] {
  const all = readDeliveries(state);
  const isExpected = ({ report, project, recipient }: Delivery) =>
    (project === ALL_PROJECTS || projects.some(({ id }) => id === project)) &&
    (settings.reports.audiences[report] ?? []).some(
      ({ to, digest }) =>
        digest === (project === ALL_PROJECTS) && to.some((one) => isSameRecipient(one, recipient)),
    );
  return all.filter((written) => {
    if (written.state !== 'written' || !isExpected(written)) return false;
    const ofReport = all.filter(({ report }) => report === written.report);
    if (ofReport.some(({ project, period }) => project === written.project && period > written.period))
      return false;
    const toRecipient = ofReport.filter(
      ({ period, recipient }) => period === written.period && isSameRecipient(recipient, written.recipient),
    );
    return mayBeTried(toRecipient, written.project, 'due', () => 'smtp', now);
  });
}
