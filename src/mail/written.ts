import { isSameRecipient } from '../config/recipients.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { type Delivery, readDeliveries } from '../state/emails.js';
import type { State } from '../state/state.js';
import { ALL_PROJECTS, mayBeTried } from './delivery.js';

/**
 * The emails that were only written to a file, and are sent once there is a mail server: about the last period that their
 * report was written or sent about, to those who are still to get them.
 */
export function readWritten(
  state: State,
  { settings, projects }: { readonly settings: Settings; readonly projects: readonly ProjectSettings[] },
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
