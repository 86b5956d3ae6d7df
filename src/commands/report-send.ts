import { MAILED_REPORTS, type ProjectSettings } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { type MailAddress, parseMailAddress } from '../mail-address.js';
import type { Delivery } from '../mail/delivery.js';
import { DeliveryError } from '../mail/delivery-error.js';
import { readDeliveries, settleInterruptedDeliveries } from '../mail/ledger.js';
import { byBothClocks, type StepContext, type StepResult } from '../schedule/context.js';
import { StepRunner } from '../schedule/step-runner.js';
import { mailReport, recipientsOf, renderFor } from '../schedule/mailing.js';
import { publishStep } from '../schedule/steps/publish.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import type { Output } from '../terminal/output.js';
import { deliveryLine, hadLine } from './mail-lines.js';
import { renderEach } from './render-each.js';
import type { Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';
import type { WorkspaceOptions } from './workspace.js';

export interface SendOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly force?: boolean;
  readonly to?: string;
}

/** Mails a report now to the configured recipients who have not had it; with `force`, to all of them again. */
export function sendReport(name: string, options: SendOptions, runtime: Runtime): Promise<ExitCode> {
  return withSteps(`report ${name} --send`, options, runtime, async (context) => {
    const recipients = chooseRecipients(recipientsOf(context.settings, name), name, options.to);
    const runner = new StepRunner(context);
    const sent = await runner.step('report', () => send(context, name, recipients, options, runtime.output));
    await runner.step('publish', () => publishStep(context, runner.changed));
    for (const { delivery, isNew } of sent ?? [])
      runtime.output.data(
        isNew || delivery.state !== 'sent'
          ? deliveryLine(delivery, context.shard, runtime)
          : hadLine(delivery),
      );
    reportFaults(runner.faults, runtime);
    return exitCodeOfFaults(runner.faults);
  });
}

/** The configured recipients, or the one of them that was asked for. Throws a `ConfigurationError` when there is none. */
export function chooseRecipients(
  configured: readonly MailAddress[],
  report: string,
  to: string | undefined,
): readonly MailAddress[] {
  if (!MAILED_REPORTS.some((name) => name === report))
    throw new ConfigurationError(
      `Readership mails ${MAILED_REPORTS.join(' and ')} only. To mail ${report} yourself, write it as a mail: readership report ${report} --format eml --output ${report}.eml`,
    );
  if (configured.length === 0)
    throw new ConfigurationError(
      `Nobody is to get ${report}: name them in the configuration, reports.${report}.to.`,
    );
  if (to === undefined) return configured;
  const chosen = configured.filter((address) => address === parseMailAddress(to));
  if (chosen.length === 0)
    throw new ConfigurationError(`${to} does not get ${report}; those who do: ${configured.join(', ')}.`);
  return chosen;
}

interface ShownDelivery {
  readonly delivery: Delivery;
  /** Attempted by this command. */
  readonly isNew: boolean;
}

async function send(
  given: StepContext,
  name: string,
  recipients: readonly MailAddress[],
  { period, force }: SendOptions,
  output: Output,
): Promise<StepResult<ShownDelivery[]>> {
  const context = await byBothClocks(given);
  const { projects, warehouse, now } = context;
  const interrupted = await settleInterruptedDeliveries(warehouse, now());
  const detail: ShownDelivery[] = [];
  const attempted: Delivery[] = [];
  const renderOne = (project: ProjectSettings) => renderFor(context, warehouse, project, { name, period });
  for await (const { project, rendered } of renderEach(projects, renderOne, output)) {
    const admission = force === true ? ('force' as const) : ('unsettled' as const);
    const tried = await mailReport(context, project, rendered, { recipients, admission });
    attempted.push(...tried);
    const ofReport = (await readDeliveries(warehouse)).filter(
      (delivery) =>
        delivery.report === name &&
        delivery.project === project.id &&
        delivery.period === rendered.period &&
        recipients.some((recipient) => recipient === delivery.recipient),
    );
    for (const delivery of ofReport)
      detail.push({ delivery, isNew: tried.some(({ recipient }) => recipient === delivery.recipient) });
  }
  const undelivered = attempted.filter(({ state }) => state !== 'sent');
  const summary = `${attempted.length - undelivered.length} mails sent, ${undelivered.length} not known to be`;
  const changed = attempted.length + interrupted.length > 0;
  const result = { detail, summary, changed };
  return undelivered.length === 0 ? result : { ...result, fault: new DeliveryError(undelivered) };
}
