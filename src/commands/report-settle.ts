import { ConfigurationError } from '../errors.js';
import type { Delivery } from '../mail/delivery.js';
import { readDeliveries, resolveDelivery } from '../mail/ledger.js';
import { publishStep } from '../schedule/steps/publish.js';
import type { ExitCode } from './exit-code.js';
import { deliveryLine } from './mail-lines.js';
import type { Runtime } from './runtime.js';
import { withSteps } from './with-steps.js';
import type { WorkspaceOptions } from './workspace.js';

export interface SettleOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly send?: boolean;
  readonly delivered?: string;
  readonly notDelivered?: string;
}

/** Settles emails of unknown outcome to one address, as a person found out. Sends nothing. */
export function settleDelivery(name: string, options: SettleOptions, runtime: Runtime): Promise<ExitCode> {
  const { delivered, notDelivered, period, project, send } = options;
  if (delivered !== undefined && notDelivered !== undefined)
    throw new ConfigurationError('Say either --delivered or --not-delivered.');
  if (send === true)
    throw new ConfigurationError('--delivered and --not-delivered send nothing, so leave out --send.');
  const recipient = (delivered ?? notDelivered ?? '').trim().toLowerCase();
  return withSteps<ExitCode>(`report ${name} --delivered`, options, runtime, async (context) => {
    const all = (await readDeliveries(context.warehouse)).filter(
      (delivery) => delivery.report === name && (project === undefined || delivery.project === project),
    );
    const unknown = all.filter(({ state }) => state === 'unknown');
    const found = unknown.filter(
      (delivery) =>
        delivery.recipient.toLowerCase() === recipient &&
        (period === undefined || delivery.period === period),
    );
    const [only, ...others] = found;
    if (only === undefined || others.length > 0)
      throw ambiguous(name, found.length === 0 ? unknown : found, all);
    const settled = await resolveDelivery(context, only, delivered !== undefined, context.now());
    runtime.output.data(deliveryLine(settled, context.shard, runtime));
    await publishStep(context, true);
    return 0;
  });
}

/** Says which emails of the report are unknown, or else what the last ones are. */
function ambiguous(name: string, unknown: readonly Delivery[], all: readonly Delivery[]): ConfigurationError {
  const list = (deliveries: readonly Delivery[]) =>
    deliveries
      .map(
        ({ period, project, recipient, state }) =>
          `\n  --period '${period}'${project === '-' ? '' : ` --project ${project}`}: ${recipient}, ${state}`,
      )
      .join('');
  if (unknown.length > 0)
    return new ConfigurationError(
      `Say which email, by --period, --project and its address. Nothing was changed. Emails of ${name} of unknown outcome:${list(unknown)}`,
    );
  return new ConfigurationError(
    all.length === 0
      ? `No email of ${name} was ever sent, so nothing needs settling.`
      : `No email of ${name} has an unknown outcome, so nothing needs settling. The last ones:${list(all.slice(-5))}`,
  );
}
