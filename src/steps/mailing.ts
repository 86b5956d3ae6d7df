import { MAILED_REPORTS, type ProjectSettings, type Settings } from '../config/schema.js';
import { lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import type { MailAddress } from '../config/mail-address.js';
import { deliver } from '../mail/deliver.js';
import type { DeliveryAdmission, Delivery } from '../mail/delivery.js';
import { compose, type Message } from '../mail/message.js';
import type { ReportDefinition } from '../reports/catalog.js';
import type { Period } from '../reports/period.js';
import { type PreparedReport, prepareReport } from '../reports/render.js';
import type { Reader } from '../warehouse/query.js';
import type { StepContext } from './context.js';

/** The recipients that the configuration names for a report; none for a report that Readership does not mail. */
export const recipientsOf = (settings: Settings, report: string): readonly MailAddress[] =>
  MAILED_REPORTS.filter((name) => name === report).flatMap((name) => settings.reports[name].to);

/** A report about a project, with its questions answered by `reader`. */
export const reportOn = (
  { settings, workspaceDir }: Pick<StepContext, 'settings' | 'workspaceDir'>,
  reader: Reader,
  project: ProjectSettings,
  report: ReportDefinition,
  period: Period,
): Promise<PreparedReport> =>
  prepareReport({
    ...{ reader, report, period, workspaceDir, calendar: settings.reports },
    project: { id: project.id, name: project.name ?? project.id, siteUrl: project.siteUrl },
  });

/** The emails of a report, one per recipient. */
export async function composeMails(
  settings: Settings,
  project: ProjectSettings,
  report: PreparedReport,
  recipients: readonly MailAddress[],
  now: Date,
): Promise<Message[]> {
  const letterhead = settings.mail;
  if (letterhead === undefined)
    throw new ConfigurationError('Emails need a sender: set mail.from in the configuration.');
  const mail = await report.mail();
  const key = { report: report.name, project: project.id, period: report.period.name };
  return Promise.all(recipients.map((recipient) => compose({ ...key, recipient }, mail, letterhead, now)));
}

/** Mails a report to those of the recipients who may have it; returns the deliveries attempted. */
export async function mailReport(
  { settings, warehouse, journal, transport, now, signal }: StepContext,
  project: ProjectSettings,
  report: PreparedReport,
  to: { readonly recipients: readonly MailAddress[]; readonly admission: DeliveryAdmission },
): Promise<Delivery[]> {
  const { last } = report.period;
  if (last > lastEndedDay(now()))
    throw new ConfigurationError(
      `${report.name} ${report.period.name} was not emailed: its last day, ${longDay(last)}, has not ended ` +
        'by the clocks of this machine and the platform. An email of it would be the only one: send it after that day.',
    );
  const messages = await composeMails(settings, project, report, to.recipients, now());
  const task = { warehouse, journal, now, signal, transport: transport(), admission: to.admission };
  return deliver(task, messages);
}
