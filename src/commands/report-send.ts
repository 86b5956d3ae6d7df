import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import { isAddress, parseRecipient, type Recipient } from '../config/recipients.js';
import { parseDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { ALL_PROJECTS, type Delivery, sentOf } from '../mail/delivery.js';
import { readDeliveries, resolveDelivery } from '../mail/ledger.js';
import { deliveryLine } from '../print/emails.js';
import { eachLoaded } from '../reports/coverage.js';
import { findReport, type ReportDefinition } from '../reports/definition.js';
import { type Calendar, choosePeriod, periodNamed } from '../reports/period.js';
import type { Parts } from '../steps/parts.js';
import { byBothClocks } from '../steps/step.js';
import { type Mailing, mailingsOf, sendMailing } from '../steps/mailing.js';
import { conclude, makeChange, runSteps } from './steps.js';

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
    const only = mailing.audience.to.filter((one) => one === wanted);
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
  const { outages } = await runSteps(command, options, runtime, async (runner, parts) => {
    const { workspace } = parts;
    const report = await findReport(name, workspace.workspaceDir);
    const mailings = chooseMailings(workspace, report, options.to);
    const configured = recipientsOf(mailingsOf(workspace, report));
    for (const stranger of recipientsOf(mailings).filter((one) => !configured.includes(one)))
      runtime.output.note(`${stranger} is not in reports.${name}.to, so it gets only this email.`);
    const sent = await runner.aside('report', () => send(parts, mailings, options));
    for (const { message } of sent?.empty ?? []) runtime.output.note(message);
    for (const { delivery, isNew } of sent?.deliveries ?? [])
      runtime.output.data(deliveryLine(delivery, runtime, { isNew }));
  });
  return conclude(outages, runtime);
}

/** The deliveries of the mailings, each with whether this command attempted it. */
async function send(given: Parts, mailings: readonly Mailing[], options: SendOptions) {
  const parts = await byBothClocks(given);
  const { workspace, store, session } = parts;
  const admission = options.force === true ? 'force' : 'unsettled';
  const { results, empty } = await eachLoaded(mailings, async (mailing) => {
    const { report, project } = mailing;
    const recipients = mailing.audience.to;
    const period = choosePeriod(report.period, options.period, session.now(), workspace.settings.reports);
    const tried = await sendMailing(parts, mailing, period, recipients, admission);
    const known = await readDeliveries(store, { report: report.name, project });
    return known
      .filter((one) => one.period === period.name && recipients.some((to) => to === one.recipient))
      .map((delivery) => ({
        delivery,
        isNew: tried.some(({ recipient }) => recipient === delivery.recipient),
      }));
  });
  const deliveries = results.flat();
  const attempted = deliveries.filter(({ isNew }) => isNew).map(({ delivery }) => delivery);
  // What was refused before is still not delivered.
  const { error } = sentOf(deliveries.map(({ delivery }) => delivery));
  return { detail: { deliveries, empty }, summary: sentOf(attempted).words, error };
}

type SettleOptions = SendOptions & { readonly delivered?: string; readonly notDelivered?: string };

/** Settles emails of unknown outcome to one address. Sends nothing. */
export function settleDelivery(name: string, options: SettleOptions, runtime: Runtime): Promise<ExitCode> {
  const { delivered, notDelivered, period, project } = options;
  const recipient = (delivered ?? notDelivered)?.trim().toLowerCase();
  if (recipient === undefined)
    throw new ConfigurationError(
      'Say what became of it: --delivered RECIPIENT or --not-delivered RECIPIENT.',
    );
  const changing = { ...options, secrets: 'optional' as const };
  return makeChange(
    `report resolve ${name}`,
    changing,
    runtime,
    async ({ workspace, store, effects, session }) => {
      const all = await readDeliveries(store, { report: name, project: project ?? null });
      const unknown = all.filter(({ state }) => state === 'unknown');
      const sent = unknown.filter((delivery) => delivery.recipient.toLowerCase() === recipient);
      const found = period === undefined ? sent : ofPeriod(sent, period, workspace.settings.reports);
      const [only, ...others] = found;
      if (only === undefined || others.length > 0)
        throw ambiguous(name, found.length === 0 ? unknown : found, all);
      const records = { warehouse: store, journal: effects.journal };
      const outcome = delivered === undefined ? 'not delivered' : 'delivered';
      const settled = await resolveDelivery(records, only, outcome, session.now());
      runtime.output.data(deliveryLine(settled, runtime));
    },
  );
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
      `Specify which email, with --period, --project and its address. Nothing was changed. Emails of ${name} of unknown outcome:${list(unknown)}`,
    );
  return new ConfigurationError(
    all.length === 0
      ? `No email of ${name} was ever sent, so nothing needs settling.`
      : `No email of ${name} has an unknown outcome, so nothing needs settling. The last ones:${list(all.slice(-5))}`,
  );
}
