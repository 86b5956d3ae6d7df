import { type Command, Option } from 'commander';
import { relative } from 'node:path';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { counted } from '../format/numbers.js';
import type { MailAddress } from '../config/mail-address.js';
import { DeliveryError } from '../mail/deliver.js';
import type { Delivery } from '../mail/delivery.js';
import { readDeliveries, resolveDelivery } from '../mail/ledger.js';
import { deliveryLine, hadLine } from '../print/emails.js';
import { listReports } from '../reports/catalog.js';
import { byBothClocks, type StepContext, type StepResult } from '../steps/context.js';
import { mailReport, recipientsOf, reportOn } from '../steps/mailing.js';
import type { Output } from '../terminal/output.js';
import { type Act, ENVIRONMENT_HELP, withProjectOption, withWorkspaceOptions } from './options.js';
import {
  chooseRecipients,
  chooseReport,
  FORMATS,
  prepareEach,
  renderReport,
  type ReportOptions,
} from './report-render.js';
import { conclude, makeChange, runSteps } from './steps.js';

type Options = ReportOptions & SettleOptions;

export function declareReport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('report')))
    .summary('render a report, or email it; without a name, list the reports')
    .description(
      'Renders a report from the published history: as an HTML page in data/reports/, with an index of all pages, or as text, JSON or an email to stdout; with --output, to that file instead. With --send, emails it from the live database to the configured recipients who have not received it. Without a name, lists the reports.',
    )
    .argument('[name]', 'the report, such as weekly')
    .option(
      '--period <period>',
      'an ISO week such as 2026-W46, a month such as 2026-11, or a day in it (default: the last one that has ended)',
    )
    .addOption(
      new Option(
        '--format <format>',
        'html writes a page; text, json and eml (the email as it would be sent) go to stdout',
      )
        .choices(FORMATS)
        .default('html'),
    )
    .option('--open', 'open the page in the browser')
    .option('--output <file>', 'write to this file, in any format')
    .option('--send', 'email it now to the configured recipients who have not received it')
    .option('--force', 'with --send: also to those who received it, or may have')
    .option('--to <address>', 'with --send or --format eml: only this configured recipient')
    .option(
      '--delivered <address>',
      'an email of unknown outcome arrived at this address: never send it again',
    )
    .option('--not-delivered <address>', 'it did not arrive: send it again when it is next due')
    .addHelpText(
      'after',
      `
Examples:
  readership report
  readership report weekly --open
  readership report weekly --period 2026-W46
  readership report weekly --format json | jq .human
  readership report weekly --output weekly.html
  readership report weekly --format eml --output weekly.eml
  readership report weekly --send
  readership report weekly --period 2026-W46 --delivered docs@example.com
${ENVIRONMENT_HELP}`,
    )
    .action((name: string | undefined, options: ReportOptions) =>
      act((runtime) => report(name, options, runtime)),
    );
}

function report(name: string | undefined, options: Options, runtime: Runtime): Promise<ExitCode> {
  if (name === undefined) return list(options, runtime);
  const { send, force, to, output, format, delivered, notDelivered } = options;
  if (delivered !== undefined || notDelivered !== undefined) return settleDelivery(name, options, runtime);
  if (send === true && output !== undefined)
    throw new ConfigurationError('--output does not go with --send, which writes no file.');
  if (send === true) return sendReport(name, options, runtime);
  if (force === true) throw new ConfigurationError('--force goes with --send: it sends a report again.');
  if (to !== undefined && format !== 'eml')
    throw new ConfigurationError('--to goes with --send or --format eml: it names one recipient.');
  return renderReport(name, options, runtime);
}

/** Lists the reports that can be used, and says what is wrong with the others. */
async function list(options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, workingDirectory } = runtime;
  const { directory } = await readWorkspace(options, runtime);
  const { reports, broken } = await listReports(directory);
  const rows = reports.map(({ name, title, period, audience, isBuiltIn, folder }) => {
    const origin = isBuiltIn ? 'built in' : relative(workingDirectory, folder);
    return [name, title, `a ${period}`, audience, origin];
  });
  const widthOf = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  for (const row of rows)
    output.data(
      row
        .map((cell, column) => cell.padEnd(widthOf(column)))
        .join('  ')
        .trimEnd(),
    );
  for (const { message } of broken) output.note(message);
  return broken.length > 0 ? 2 : 0;
}

type SendOptions = Omit<ReportOptions, 'format'>;

/** Emails a report now to the configured recipients who have not received it; with `force`, to all of them again. */
export async function sendReport(name: string, options: SendOptions, runtime: Runtime): Promise<ExitCode> {
  const command = `report ${name} --send`;
  const { result, outages, workspace } = await runSteps(command, options, runtime, (runner, context) => {
    const recipients = chooseRecipients(recipientsOf(context.settings, name), name, options.to);
    return runner.step('report', () => send(context, name, recipients, options, runtime.output));
  });
  for (const { delivery, isNew } of result ?? [])
    runtime.output.data(
      isNew || delivery.state !== 'sent'
        ? deliveryLine(delivery, workspace.shard, runtime)
        : hadLine(delivery),
    );
  return conclude(outages, runtime);
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
  return undelivered.length === 0 ? result : { ...result, error: new DeliveryError(undelivered) };
}

interface SettleOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly send?: boolean;
  readonly delivered?: string;
  readonly notDelivered?: string;
}

/** Settles emails of unknown outcome to one address, as a person found out. Sends nothing. */
function settleDelivery(name: string, options: SettleOptions, runtime: Runtime): Promise<ExitCode> {
  const { delivered, notDelivered, period, project, send } = options;
  if (delivered !== undefined && notDelivered !== undefined)
    throw new ConfigurationError('Say either --delivered or --not-delivered.');
  if (send === true)
    throw new ConfigurationError('--delivered and --not-delivered send nothing, so leave out --send.');
  const recipient = (delivered ?? notDelivered ?? '').trim().toLowerCase();
  return makeChange(`report ${name} --delivered`, options, runtime, async (context) => {
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
