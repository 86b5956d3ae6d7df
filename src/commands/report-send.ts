import type { ProjectSettings } from '../config/schema.js';
import { counted } from '../format/numbers.js';
import type { MailAddress } from '../mail-address.js';
import type { Delivery } from '../mail/delivery.js';
import { DeliveryError } from '../mail/delivery-error.js';
import { readDeliveries } from '../mail/ledger.js';
import { byBothClocks, type StepContext, type StepResult } from '../schedule/context.js';
import { mailReport, recipientsOf, reportOn } from '../schedule/mailing.js';
import { StepRunner } from '../schedule/step-runner.js';
import { publishStep } from '../schedule/steps/publish.js';
import type { Output } from '../terminal/output.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import { deliveryLine, hadLine } from './mail-lines.js';
import { chooseRecipients, chooseReport, prepareEach, type ReportOptions } from './report-render.js';
import type { Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';

type SendOptions = Omit<ReportOptions, 'format'>;

/** Emails a report now to the configured recipients who have not received it; with `force`, to all of them again. */
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

interface ShownDelivery {
  readonly delivery: Delivery;
  /** Attempted by this command. */
  readonly isNew: boolean;
}

async function send(
  given: StepContext,
  name: string,
  recipients: readonly MailAddress[],
  options: SendOptions,
  output: Output,
): Promise<StepResult<ShownDelivery[]>> {
  const context = await byBothClocks(given);
  const { projects, warehouse, now } = context;
  const { report, period } = await chooseReport(name, options, context, now());
  const detail: ShownDelivery[] = [];
  const attempted: Delivery[] = [];
  const prepare = (project: ProjectSettings) => reportOn(context, warehouse, project, report, period);
  for await (const { project, report } of prepareEach(projects, prepare, output)) {
    const admission = options.force === true ? ('force' as const) : ('unsettled' as const);
    const tried = await mailReport(context, project, report, { recipients, admission });
    attempted.push(...tried);
    const ofReport = (await readDeliveries(warehouse)).filter(
      (delivery) =>
        delivery.report === name &&
        delivery.project === project.id &&
        delivery.period === period.name &&
        recipients.some((recipient) => recipient === delivery.recipient),
    );
    for (const delivery of ofReport)
      detail.push({ delivery, isNew: tried.some(({ recipient }) => recipient === delivery.recipient) });
  }
  const undelivered = attempted.filter(({ state }) => state !== 'sent');
  const sent = counted(attempted.length - undelivered.length, 'email');
  const summary = `${sent} sent, ${undelivered.length} unconfirmed`;
  const changed = attempted.length > 0;
  const result = { detail, summary, changed };
  return undelivered.length === 0 ? result : { ...result, fault: new DeliveryError(undelivered) };
}
