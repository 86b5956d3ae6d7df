import { withState } from '../app/state.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { isSameRecipient } from '../config/recipients.js';
import { parseDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { ALL_PROJECTS, resolved } from '../mail/delivery.js';
import { deliveryLine } from '../print/emails.js';
import { type Calendar, periodNamed } from '../reports/period.js';
import { type Delivery, readDeliveries, storeDelivery } from '../state/emails.js';

interface ResolveOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly delivered?: string;
  readonly notDelivered?: string;
}

/** Settles emails of unknown outcome to one address. Sends nothing, and waits for no other command. */
export async function resolveDelivery(
  name: string,
  options: ResolveOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const { delivered, notDelivered, period, project } = options;
  const recipient = (delivered ?? notDelivered)?.trim();
  if (recipient === undefined)
    throw new ConfigurationError(
      'Say whether it arrived: --delivered RECIPIENT or --not-delivered RECIPIENT.',
    );
  const workspace = await readWorkspace(options, runtime, 'optional');
  const settled = await withState(workspace, (state) =>
    state.transaction(() => {
      const all = readDeliveries(state).filter(
        (one) => one.report === name && [undefined, one.project].includes(project),
      );
      const unknown = all.filter((one) => one.state === 'unknown');
      const sent = unknown.filter((delivery) => isSameRecipient(delivery.recipient, recipient));
      const found = period === undefined ? sent : ofPeriod(sent, period, workspace.settings.reports);
      const [only, ...others] = found;
      if (only === undefined || others.length > 0)
        throw ambiguous(name, found.length === 0 ? unknown : found, all);
      const after = resolved(only, delivered === undefined ? 'not delivered' : 'delivered', runtime.now());
      storeDelivery(state, after);
      return after;
    }),
  );
  runtime.output.data(deliveryLine(settled, runtime));
  return 0;
}

/**
 * The deliveries of a period with this name, which may be an alert's, or else the
 * reports of the period that this day lies in.
 */
function ofPeriod(deliveries: readonly Delivery[], text: string, calendar: Calendar): Delivery[] {
  const named = deliveries.filter(({ period }) => period === text);
  const day = parseDay(text);
  if (named.length > 0 || day === undefined) return named;
  return deliveries.filter((delivery) => {
    const period = periodNamed(delivery.period, calendar);
    return period !== undefined && period.first <= day && day <= period.last;
  });
}

/** Lists the emails of the report with an unknown outcome, or else its last ones. */
function ambiguous(name: string, unknown: readonly Delivery[], all: readonly Delivery[]): ConfigurationError {
  const list = (deliveries: readonly Delivery[]) =>
    deliveries
      .map(
        ({ period, project, recipient, state }) =>
          `\n  --period '${period}'${project === ALL_PROJECTS ? '' : ` --project ${project}`}: ${recipient}, ${state}`,
      )
      .join('');
  if (unknown.length > 0)
    return new ConfigurationError(
      `Specify which email, with --period, --project and its address. Nothing was changed. Emails of ${name} with an unknown outcome:${list(unknown)}`,
    );
  return new ConfigurationError(
    all.length === 0
      ? `No email of ${name} was ever sent, so there is nothing to resolve.`
      : `No email of ${name} has an unknown outcome, so there is nothing to resolve. The last ones:${list(all.slice(-5))}`,
  );
}
