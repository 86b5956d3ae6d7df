import { MAILED_REPORTS, type ProjectSettings, type Settings } from '../config/schema.js';
import { lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import type { MailAddress } from '../mail-address.js';
import { deliver } from '../mail/deliver.js';
import type { DeliveryAdmission, Delivery } from '../mail/delivery.js';
import { compose, type Message } from '../mail/message.js';
import { type RenderedReport, type RenderRequest, renderReport } from '../reports/render.js';
import type { Reader } from '../warehouse/query.js';
import type { StepContext } from './context.js';

/** Whom the configuration names for a report: nobody, for a report that it has no place for. */
export const recipientsOf = (settings: Settings, report: string): readonly MailAddress[] =>
  MAILED_REPORTS.filter((name) => name === report).flatMap((name) => settings.reports[name].to);

/** Renders a report about a project, for the last one that has ended unless a period is given. */
export const renderFor = (
  { settings, workspaceDir, now }: Pick<StepContext, 'settings' | 'workspaceDir' | 'now'>,
  reader: Reader,
  project: ProjectSettings,
  report: Pick<RenderRequest, 'name' | 'period' | 'withMail'>,
): Promise<RenderedReport> =>
  renderReport({
    ...{ reader, workspaceDir, now: now(), calendar: settings.reports },
    ...report,
    project: { id: project.id, name: project.name ?? project.id, siteUrl: project.siteUrl },
  });

/** The mails of a report, one a recipient. Throws a `ConfigurationError` when it cannot be one. */
export function composeMails(
  settings: Settings,
  project: ProjectSettings,
  rendered: RenderedReport,
  recipients: readonly MailAddress[],
  now: Date,
): Promise<Message[]> {
  const { name: report, period, mail } = rendered;
  const letterhead = settings.mail;
  if (mail === null)
    throw new ConfigurationError(
      `The report ${report} cannot be mailed: it has no templates ${report}.mail.html.hbs and ${report}.text.hbs.`,
    );
  if (letterhead === undefined)
    throw new ConfigurationError('Say who mails are from: mail.from in the configuration.');
  return Promise.all(
    recipients.map((recipient) =>
      compose({ report, project: project.id, period, recipient }, mail, letterhead, now),
    ),
  );
}

/** Mails a rendered report to those of the recipients who may have it; the deliveries attempted. */
export async function mailReport(
  { settings, warehouse, transport, now, signal }: StepContext,
  project: ProjectSettings,
  rendered: RenderedReport,
  to: { readonly recipients: readonly MailAddress[]; readonly admission: DeliveryAdmission },
): Promise<Delivery[]> {
  if (rendered.days.last > lastEndedDay(now()))
    throw new ConfigurationError(
      `${rendered.name} ${rendered.period} was not emailed: its last day, ${longDay(rendered.days.last)}, has not ended ` +
        'by the clocks of this machine and the platform. An email of it would be the only one: send it after that day.',
    );
  const messages = await composeMails(settings, project, rendered, to.recipients, now());
  const task = { warehouse, now, signal, transport: transport(), admission: to.admission };
  return deliver(task, messages);
}
