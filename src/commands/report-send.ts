import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import { isAddress, isSameRecipient, parseRecipient, type Recipient } from '../config/recipients.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { addSent, type Sent, sentOf } from '../mail/delivery.js';
import { deliveryLine } from '../print/emails.js';
import { eachLoaded } from '../reports/coverage.js';
import { findReport, type ReportDefinition } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import type { Parts } from '../steps/parts.js';
import { byBothClocks } from '../steps/step.js';
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
  const { outages } = await runSteps(command, options, runtime, async (runner, parts) => {
    const { workspace } = parts;
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
  const { workspace, state, session } = parts;
  const admission = options.force === true ? 'force' : 'unsettled';
  const attempted: Sent = { deliveries: [], pausedBy: undefined, silentHosts: new Set() };
  const { results, empty } = await eachLoaded(mailings, async (mailing) => {
    const recipients = mailing.audience.to;
    const { reports } = workspace.settings;
    const period = choosePeriod(mailing.report.period, options.period, session.now(), reports);
    addSent(attempted, await sendMailing(parts, mailing, period, recipients, admission));
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
