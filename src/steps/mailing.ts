import { type Audience, type ProjectSettings, type Settings } from '../config/schema.js';
import { type Shard, shardName } from '../config/shard.js';
import { lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import type { MailAddress } from '../config/mail-address.js';
import { deliver } from '../mail/deliver.js';
import type { DeliveryAdmission, Delivery } from '../mail/delivery.js';
import { compose, type Message } from '../mail/message.js';
import type { ReportDefinition } from '../reports/definition.js';
import { digestOf } from '../reports/digest.js';
import { NothingLoadedError } from '../reports/errors.js';
import { pageUrl } from '../reports/pages.js';
import type { Period } from '../reports/period.js';
import { type PreparedReport, prepareReport, type ReportMail } from '../reports/render.js';
import type { Reader } from '../warehouse/query.js';
import type { StepContext } from './context.js';

/** One email that goes to every recipient of an audience: about one project, or a digest about all. */
export interface Mailing {
  readonly report: ReportDefinition;
  readonly audience: Audience;
  readonly projects: readonly ProjectSettings[];
  /** What the ledger of deliveries calls the project: a project id, or a name for all of them. */
  readonly project: string;
}

/** Every mailing of a report, as the configuration has it; none for a report without recipients. */
export function mailingsOf(
  {
    settings,
    projects,
    shard,
  }: { settings: Settings; projects: readonly ProjectSettings[]; shard: Shard | undefined },
  report: ReportDefinition,
): Mailing[] {
  const audiences = settings.reports.audiences[report.name] ?? [];
  if (!report.mail && audiences.length > 0)
    throw new ConfigurationError(
      `${report.folder}/report.yaml says mail: false, but the configuration names recipients: change one of them.`,
    );
  const all = shard === undefined ? '-' : shardName(shard);
  return audiences.flatMap((audience): Mailing[] =>
    audience.digest
      ? [{ report, audience, projects, project: all }]
      : projects.map((project) => ({ report, audience, projects: [project], project: project.id })),
  );
}

type Place = Pick<StepContext, 'settings' | 'workspaceDir'>;

/** A report about a project, with its questions answered by `reader`. */
export const reportOn = (
  { settings, workspaceDir }: Place,
  reader: Reader,
  project: ProjectSettings,
  { report, period, where }: { report: ReportDefinition; period: Period; where?: string | undefined },
): Promise<PreparedReport> =>
  prepareReport({
    ...{ reader, report, period, workspaceDir, where, calendar: settings.reports },
    project: { id: project.id, name: project.name, siteUrl: project.siteUrl },
    pageUrl: pageUrl(settings.reports.baseUrl, project.id, { name: report.name, period }),
  });

/** What a mailing says of a period. Throws a `NothingLoadedError` when nothing is loaded for any project. */
export async function mailOf(
  place: Place,
  reader: Reader,
  { report, audience, projects }: Mailing,
  period: Period,
): Promise<ReportMail> {
  const { where } = audience;
  const prepared: PreparedReport[] = [];
  let empty: NothingLoadedError | undefined;
  for (const project of projects)
    try {
      prepared.push(await reportOn(place, reader, project, { report, period, where }));
    } catch (error) {
      if (!(error instanceof NothingLoadedError)) throw error;
      empty ??= error;
    }
  const [first] = prepared;
  if (first === undefined) throw empty ?? new NothingLoadedError(`${report.name} is about no project.`);
  return audience.digest ? digestOf(report, period, prepared, place.workspaceDir) : first.mail();
}

/** The emails of a mailing, one per recipient. */
export function composeMails(
  { mail: letterhead }: Pick<Settings, 'mail'>,
  { report, project }: Mailing,
  period: Period,
  { mail, recipients }: { readonly mail: ReportMail; readonly recipients: readonly MailAddress[] },
  now: Date,
): Promise<Message[]> {
  if (letterhead === undefined)
    throw new ConfigurationError('Emails need a sender: set mail.from in the configuration.');
  const key = { report: report.name, project, period: period.name };
  return Promise.all(recipients.map((recipient) => compose({ ...key, recipient }, mail, letterhead, now)));
}

/** Sends a mailing to those of the recipients who may have it; returns the deliveries attempted. */
export async function sendMailing(
  context: StepContext,
  mailing: Mailing,
  period: Period,
  to: { readonly recipients: readonly MailAddress[]; readonly admission: DeliveryAdmission },
): Promise<Delivery[]> {
  const { settings, warehouse, journal, transport, now, signal } = context;
  if (period.last > lastEndedDay(now()))
    throw new ConfigurationError(
      `${mailing.report.name} ${period.name} was not emailed: its last day, ${longDay(period.last)}, has not ended ` +
        'by the clocks of this machine and the platform. An email of it would be the only one: send it after that day.',
    );
  const mail = await mailOf(context, warehouse, mailing, period);
  const messages = await composeMails(settings, mailing, period, { mail, recipients: to.recipients }, now());
  const task = { warehouse, journal, now, signal, transport: transport(), admission: to.admission };
  return deliver(task, messages);
}
