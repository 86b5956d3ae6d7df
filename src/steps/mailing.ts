import type { Audience, Recipient } from '../config/recipients.js';
import type { ProjectSettings } from '../config/schema.js';
import { daysIn, lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import { composeAll, type Notice } from '../mail/compose.js';
import {
  ALL_PROJECTS,
  type Delivery,
  type DeliveryAdmission,
  type DeliveryKey,
  type Figures,
} from '../mail/delivery.js';
import { deliver } from '../mail/ledger.js';
import { type Said, storedDay, type StoredDays, viewsOf } from '../reports/correction.js';
import { expectSendable, type ReportDefinition } from '../reports/definition.js';
import { eachLoaded, NothingLoadedError } from '../reports/coverage.js';
import type { Period } from '../reports/period.js';
import { digestOf, type PreparedReport, prepareReport, type ReportPlace } from '../reports/render.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { StepContext } from './step.js';

/** What goes to every recipient of an audience: about one project, or a digest about all. */
export interface Mailing {
  readonly report: ReportDefinition;
  readonly audience: Audience;
  readonly projects: readonly ProjectSettings[];
  /** The project in the ledger of deliveries: a project id, or a name for all projects. */
  readonly project: string;
}

/** The configured mailings of a report; none if it has no recipients. */
export function mailingsOf(
  { settings, projects }: Pick<StepContext, 'settings' | 'projects'>,
  report: ReportDefinition,
): Mailing[] {
  const audiences = settings.reports.audiences[report.name] ?? [];
  if (!report.mail && audiences.length > 0)
    throw new ConfigurationError(
      `${report.folder}/report.yaml says mail: false, but the configuration lists recipients: change one of them.`,
    );
  return audiences.flatMap((audience): Mailing[] =>
    audience.digest && projects.length > 0
      ? [{ report, audience, projects, project: ALL_PROJECTS }]
      : projects.map((project) => ({ report, audience, projects: [project], project: project.id })),
  );
}

/**
 * The content of a mailing about a period. Throws a `NothingLoadedError` when nothing is loaded for
 * any project.
 */
export async function reportNotice(
  place: ReportPlace,
  reader: Reader,
  mailing: Mailing,
  period: Period,
): Promise<Notice> {
  const { report, audience, projects } = mailing;
  expectSendable(report, audience);
  const request = { report, period, where: audience.where };
  const prepare = (project: ProjectSettings) => prepareReport(place, reader, project, request);
  const { results: editions } = await eachLoaded(projects, prepare);
  const [first] = editions;
  if (first === undefined) throw new NothingLoadedError(`${report.name} covers no project.`);
  const stored = await storedOf(reader, mailing, period);
  const whole = audience.digest ? await digestOf(place, request, editions) : first;
  return {
    kind: 'report',
    subject: whole.subject,
    pageUrl: whole.pageUrl,
    brief: whole.brief(),
    data: whole.model,
    figures: { ...stored, said: JSON.stringify(saidIn(editions, stored)) },
    email: () => whole.mail(),
  };
}

/** What is stored of a period about the pages of a mailing, for all projects that have any days of it. */
export interface Stored extends Figures {
  /** The number of days in the period, and its multiple for those projects. */
  readonly length: number;
  readonly expected: number;
  /** Days that no longer change. */
  readonly final: number;
  /** The pattern of the pages, unless they are all of the site. */
  readonly pages: string | undefined;
  /** The days of each project. */
  readonly of: ReadonlyMap<string, StoredDays>;
}

const PERIOD_DAYS = readSql(import.meta.url, 'statements/period-days.sql');

export async function storedOf(
  reader: Reader,
  { projects, audience: { where: pages } }: Pick<Mailing, 'projects' | 'audience'>,
  { first, last }: Period,
  since: Date | null = null,
): Promise<Stored> {
  const of = new Map<string, StoredDays>();
  for (const { id: project } of projects) {
    const about = { project, first, last, pages: pages ?? '*', since };
    const days = await reader.query(PERIOD_DAYS, storedDay, about);
    if (days.length > 0) of.set(project, days);
  }
  const days = [...of.values()].flat();
  const { length } = daysIn({ first, last });
  return {
    length,
    expected: length * Math.max(1, of.size),
    days: days.length,
    final: days.filter(({ is_final }) => is_final).length,
    ...viewsOf(days),
    pages,
    of,
  };
}

/** What reports of a period say, with what is stored about each of their projects. */
export const saidIn = (reports: readonly PreparedReport[], { of, pages }: Stored): Said[] =>
  reports.map(({ period, model, words }) => {
    const days = of.get(model.project.id) ?? [];
    const loaded = new Set(days.map(({ day }) => day));
    const missing = daysIn(period).filter((day) => !loaded.has(day));
    return words({ project: model.project.id, pages, ...viewsOf(days), missing });
  });

/** Sends a notice to the recipients whose deliveries may be attempted; returns those deliveries. */
export async function sendNotice(
  { settings, warehouse, journal, transport, channels, now, signal }: StepContext,
  notice: Notice,
  key: Omit<DeliveryKey, 'recipient'>,
  recipients: readonly Recipient[],
  admission: DeliveryAdmission,
): Promise<Delivery[]> {
  const messages = await composeAll(notice, key, recipients, settings.mail, channels, now());
  return deliver({ warehouse, journal, now, signal, transport: transport(), admission }, messages);
}

/** Sends a mailing of a period, as `sendNotice` does. */
export async function sendMailing(
  context: StepContext,
  mailing: Mailing,
  period: Period,
  recipients: readonly Recipient[],
  admission: DeliveryAdmission,
): Promise<Delivery[]> {
  const { warehouse, now } = context;
  if (period.last > lastEndedDay(now()))
    throw new ConfigurationError(
      `${mailing.report.name} ${period.name} was not emailed: its last day, ${longDay(period.last)}, has not ended ` +
        'by the clocks of this machine and the platform. It is emailed only once, so send it after that day.',
    );
  const notice = await reportNotice(context, warehouse, mailing, period);
  const key = { report: mailing.report.name, project: mailing.project, period: period.name };
  return sendNotice(context, notice, key, recipients, admission);
}
