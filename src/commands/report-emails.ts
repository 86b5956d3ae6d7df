import { selectingNow } from '../agents/plan.js';
import { withState } from '../app/state.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { isAddress, isSameRecipient, parseRecipient, type Recipient } from '../config/recipients.js';
import { parseDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { addSent, ALL_PROJECTS, resolved, type Sent, sentOf } from '../mail/delivery.js';
import { deliveryLine } from '../print/emails.js';
import { eachLoaded } from '../reports/coverage.js';
import { findReport, type ReportDefinition } from '../reports/definition.js';
import { type Calendar, choosePeriod, periodNamed } from '../reports/period.js';
import { type Delivery, readDeliveries, storeDelivery } from '../state/emails.js';
import { byBothClocks, type Parts } from '../steps/step.js';
import { deliveriesOf, type Mailing, mailingsOf, sendMailing } from '../steps/mailing.js';
import { conclude, runSteps } from './steps.js';

export interface SendOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly force?: boolean;
  readonly to?: string;
}

/**
 * The mailings of a report: to everyone, or to the one recipient that `--to` names, which may be an address
 * that is not configured. Throws a `ConfigurationError` when there is no recipient.
 */
function chooseMailings(
  place: Parameters<typeof mailingsOf>[0],
  report: ReportDefinition,
  to: string | undefined,
): Mailing[] {
  const mailings = mailingsOf(place, report);
  const setting = `reports.${report.name}.to`;
  if (to === undefined && mailings.length === 0)
    throw new ConfigurationError(
      `${report.name} has no recipients: add them to the configuration, ${setting}, or name one address with --to.`,
    );
  if (to === undefined) return mailings;
  const wanted = parseRecipient(to);
  const chosen = mailings.flatMap((mailing) => {
    const only = mailing.audience.to.filter((one) => isSameRecipient(one, wanted ?? ''));
    return only.length === 0 ? [] : { ...mailing, audience: { ...mailing.audience, to: only } };
  });
  if (chosen.length > 0) return chosen;
  if (wanted !== undefined && isAddress(wanted))
    return place.projects.map((project) => ({
      report,
      projects: [project],
      project: project.id,
      audience: { to: [wanted], digest: false },
    }));
  throw new ConfigurationError(
    `${to} is neither an email address nor a channel in ${setting}. Its recipients: ${recipientsOf(mailings).join(', ') || 'none'}.`,
  );
}

const recipientsOf = (mailings: readonly Mailing[]): Recipient[] => [
  ...new Set(mailings.flatMap(({ audience }) => audience.to)),
];

/**
 * Emails a report now to the configured recipients who have not received it; with `force`, to all
 * of them again.
 */
export async function sendReport(name: string, options: SendOptions, runtime: Runtime): Promise<ExitCode> {
  const command = `report send ${name}`;
  const workspace = await readWorkspace(options, runtime);
  const { outages } = await runSteps(command, workspace, {}, runtime, async (runner, parts) => {
    const report = await findReport(name, workspace.workspaceDir);
    const mailings = chooseMailings(workspace, report, options.to);
    const configured = recipientsOf(mailingsOf(workspace, report));
    const isConfigured = (recipient: Recipient) => configured.some((one) => isSameRecipient(one, recipient));
    for (const stranger of recipientsOf(mailings).filter((one) => !isConfigured(one)))
      runtime.output.note(`${stranger} is not in reports.${name}.to, so it gets only this email.`);
    const sent = await runner.aside('report', () => send(parts, mailings, options));
    for (const { error } of sent?.empty ?? []) runtime.output.note(error.message);
    for (const { delivery, isNew } of sent?.deliveries ?? [])
      runtime.output.data(deliveryLine(delivery, runtime, { isNew }));
  });
  return conclude(outages, runtime);
}

/** The deliveries of the mailings, each with whether this command attempted it. */
async function send(given: Parts, mailings: readonly Mailing[], options: SendOptions) {
  const parts = await byBothClocks(given);
  const { workspace, state, store: reader, session } = parts;
  const { reports, improve: rules } = workspace.settings;
  const selectNow = selectingNow({ reader, state, rules, now: session.now(), signal: session.signal });
  const admission = options.force === true ? 'force' : 'unsettled';
  const attempted: Sent = { deliveries: [], pausedBy: undefined, silentHosts: new Set() };
  const { results, empty } = await eachLoaded(mailings, async (mailing) => {
    const recipients = mailing.audience.to;
    const period = choosePeriod(mailing.report.period, options.period, session.now(), reports);
    const due = { mailing, period, recipients, admission, reader, selectNow } as const;
    addSent(attempted, await sendMailing(parts, due));
    return deliveriesOf(state, mailing)
      .filter((one) => one.period === period.name)
      .filter((one) => recipients.some((to) => isSameRecipient(to, one.recipient)));
  });
  // One about all projects concerns each of them.
  const found = [...new Map(results.flat().map((one) => [one.attempt, one])).values()];
  const numbers = attempted.deliveries.map(({ attempt }) => attempt);
  const deliveries = found.map((delivery) => ({ delivery, isNew: numbers.includes(delivery.attempt) }));
  // What was refused before is still not delivered.
  const { error } = sentOf({ ...attempted, deliveries: found });
  return { detail: { deliveries, empty }, summary: sentOf(attempted).words, error };
}

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
