import type { Runtime } from '../app/workspace.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { counted } from '../format/numbers.js';
import { type Delivery, isAboutAll } from '../mail/delivery.js';
import { DeliveryError, readDeliveries, resolveDelivery } from '../mail/ledger.js';
import { deliveryLine, outcomeLine } from '../print/emails.js';
import { eachLoaded } from '../reports/coverage.js';
import { findReport } from '../reports/definition.js';
import { byBothClocks, type StepContext, type StepResult } from '../steps/step.js';
import { type Mailing, mailingsOf, sendMailing } from '../steps/mailing.js';
import type { Output } from '../terminal/output.js';
import { chooseMailings, choosePeriod, type ReportOptions } from './report-render.js';
import { conclude, makeChange, runSteps } from './steps.js';

type SendOptions = Omit<ReportOptions, 'format'>;

/** Emails a report now to the configured recipients who have not received it; with `force`, to all of them again. */
export async function sendReport(name: string, options: SendOptions, runtime: Runtime): Promise<ExitCode> {
  const command = `report ${name} --send`;
  const done = await runSteps(command, options, runtime, async (runner, context) => {
    const report = await findReport(name, context.workspaceDir);
    const mailings = chooseMailings(mailingsOf(context, report), name, options.to);
    return runner.step('report', () => send(context, mailings, options, runtime.output));
  });
  const { result, outages, workspace } = done;
  for (const { delivery, isNew } of result ?? [])
    runtime.output.data(outcomeLine(delivery, isNew, workspace.shard, runtime));
  return conclude(outages, runtime);
}

interface ShownDelivery {
  readonly delivery: Delivery;
  /** Attempted by this command. */
  readonly isNew: boolean;
}

async function send(
  given: StepContext,
  mailings: readonly Mailing[],
  options: SendOptions,
  output: Output,
): Promise<StepResult<ShownDelivery[]>> {
  const context = await byBothClocks(given);
  const detail: ShownDelivery[] = [];
  const attempted: Delivery[] = [];
  const { empty } = await eachLoaded(mailings, async (mailing) => {
    const { report, project, audience } = mailing;
    const recipients = audience.to;
    const period = choosePeriod(report, options, context.settings, context.now());
    const admission = options.force === true ? ('force' as const) : ('unsettled' as const);
    const tried = await sendMailing(context, mailing, period, { recipients, admission });
    attempted.push(...tried);
    const ofReport = (await readDeliveries(context.warehouse, { report: report.name, project })).filter(
      (delivery) =>
        delivery.period === period.name && recipients.some((recipient) => recipient === delivery.recipient),
    );
    for (const delivery of ofReport)
      detail.push({ delivery, isNew: tried.some(({ recipient }) => recipient === delivery.recipient) });
  });
  for (const { message } of empty) output.note(message);
  const undelivered = attempted.filter(({ state }) => state !== 'sent');
  const sent = counted(attempted.length - undelivered.length, 'email');
  const summary = `${sent} sent, ${undelivered.length} unconfirmed`;
  const result = { detail, summary };
  return undelivered.length === 0 ? result : { ...result, error: new DeliveryError(undelivered) };
}

type SettleOptions = SendOptions & { readonly delivered?: string; readonly notDelivered?: string };

/** Settles emails of unknown outcome to one address. Sends nothing. */
export function settleDelivery(name: string, options: SettleOptions, runtime: Runtime): Promise<ExitCode> {
  const { delivered, notDelivered, period, project } = options;
  if (delivered !== undefined && notDelivered !== undefined)
    throw new ConfigurationError('Give either --delivered or --not-delivered.');
  const recipient = (delivered ?? notDelivered ?? '').trim().toLowerCase();
  return makeChange(`report ${name} --delivered`, options, runtime, async (context) => {
    const all = await readDeliveries(context.warehouse, { report: name, project });
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
  });
}

/** Lists the emails of the report with an unknown outcome, or else its last ones. */
function ambiguous(name: string, unknown: readonly Delivery[], all: readonly Delivery[]): ConfigurationError {
  const list = (deliveries: readonly Delivery[]) =>
    deliveries
      .map(
        ({ period, project, recipient, state }) =>
          `\n  --period '${period}'${isAboutAll(project) ? '' : ` --project ${project}`}: ${recipient}, ${state}`,
      )
      .join('');
  if (unknown.length > 0)
    return new ConfigurationError(
      `Specify which email, with --period, --project and its address. Nothing was changed. Emails of ${name} of unknown outcome:${list(unknown)}`,
    );
  return new ConfigurationError(
    all.length === 0
      ? `No email of ${name} was ever sent, so nothing needs settling.`
      : `No email of ${name} has an unknown outcome, so nothing needs settling. The last ones:${list(all.slice(-5))}`,
  );
}
