import { z } from 'zod';
import type { Audience, Recipient } from '../config/recipients.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { type Shard, shardName } from '../config/shard.js';
import { daysIn, lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import { composeAll } from '../mail/compose.js';
import { deliver } from '../mail/deliver.js';
import type { Delivery, DeliveryAdmission, DeliveryKey, Figures } from '../mail/delivery.js';
import type { Notice } from '../mail/message.js';
import { attachmentsOf } from '../reports/answers.js';
import type { ReportDefinition } from '../reports/definition.js';
import { NothingLoadedError } from '../reports/coverage.js';
import { pageUrl } from '../reports/pages.js';
import type { Period } from '../reports/period.js';
import { digestOf, type PreparedReport, prepareReport } from '../reports/render.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { StepContext } from './step.js';

/** What goes to every recipient of an audience: about one project, or a digest about all. */
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
      `${report.folder}/report.yaml says mail: false, but the configuration lists recipients: change one of them.`,
    );
  const all = shard === undefined ? '-' : shardName(shard);
  return audiences.flatMap((audience): Mailing[] =>
    audience.digest
      ? [{ report, audience, projects, project: all }]
      : projects.map((project) => ({ report, audience, projects: [project], project: project.id })),
  );
}

export type Place = Pick<StepContext, 'settings' | 'workspaceDir'>;

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
    letterhead: settings.mail,
    pageUrl: pageUrl(settings.reports.baseUrl, project.id, { name: report.name, period }),
  });

/** What a mailing says of a period. Throws a `NothingLoadedError` when nothing is loaded for any project. */
export async function noticeOf(
  place: Place,
  reader: Reader,
  mailing: Mailing,
  period: Period,
): Promise<Notice> {
  const { report, audience, projects } = mailing;
  const { where } = audience;
  const prepared: { project: string; edition: PreparedReport }[] = [];
  let empty: NothingLoadedError | undefined;
  for (const project of projects)
    try {
      const edition = await reportOn(place, reader, project, { report, period, where });
      prepared.push({ project: project.id, edition });
    } catch (error) {
      if (!(error instanceof NothingLoadedError)) throw error;
      empty ??= error;
    }
  const editions = prepared.map(({ edition }) => edition);
  const [first] = editions;
  if (first === undefined) throw empty ?? new NothingLoadedError(`${report.name} covers no project.`);
  const answers = prepared.map(({ project, edition }) => ({ project, answers: edition.answers }));
  const attachments = attachmentsOf(report, audience.attach, answers);
  const digest = audience.digest ? await digestOf(report, period, editions, place.workspaceDir) : undefined;
  return {
    kind: 'report',
    subject: digest?.subject ?? first.subject,
    brief: digest?.brief ?? first.brief(),
    pageUrl: digest === undefined ? first.pageUrl : null,
    data: digest === undefined ? first.model : { projects: editions.map(({ model }) => model) },
    figures: await storedOf(reader, projects, period),
    email: async () => ({ ...(digest ?? (await first.mail())), attachments }),
  };
}

/** What is stored of a period, over all projects that have any of it. */
export interface Stored extends Figures {
  /** Days of the period, and those of all the projects that have any of it. */
  readonly length: number;
  readonly expected: number;
  /** Days that no longer change. */
  readonly final: number;
}

const PERIOD_FIGURES = readSql(import.meta.url, 'statements/period-figures.sql');
const figuresRow = z.object({ days: z.int(), final: z.int(), human: z.int(), ai: z.int() });

export async function storedOf(
  reader: Reader,
  projects: readonly ProjectSettings[],
  { first, last }: Period,
): Promise<Stored> {
  const rows = await Promise.all(
    projects.map(({ id }) => reader.query(PERIOD_FIGURES, figuresRow, { project: id, first, last })),
  );
  const stored = rows.flat().filter(({ days }) => days > 0);
  const sum = (of: keyof z.infer<typeof figuresRow>) => stored.reduce((total, row) => total + row[of], 0);
  const { length } = daysIn({ first, last });
  const expected = length * Math.max(1, stored.length);
  return { length, expected, days: sum('days'), final: sum('final'), human: sum('human'), ai: sum('ai') };
}

/** Hands a notice to those of the recipients who may have it; returns the deliveries attempted. */
export async function handOver(
  { settings, warehouse, journal, transport, channels, now, signal }: StepContext,
  notice: Notice,
  key: Omit<DeliveryKey, 'recipient'>,
  to: { readonly recipients: readonly Recipient[]; readonly admission: DeliveryAdmission },
): Promise<Delivery[]> {
  const messages = await composeAll(notice, key, to.recipients, { mail: settings.mail, channels }, now());
  const task = { warehouse, journal, now, signal, transport: transport(), admission: to.admission };
  return deliver(task, messages);
}

/** Sends a mailing to those of the recipients who may have it; returns the deliveries attempted. */
export async function sendMailing(
  context: StepContext,
  mailing: Mailing,
  period: Period,
  to: { readonly recipients: readonly Recipient[]; readonly admission: DeliveryAdmission },
): Promise<Delivery[]> {
  const { warehouse, now } = context;
  if (period.last > lastEndedDay(now()))
    throw new ConfigurationError(
      `${mailing.report.name} ${period.name} was not emailed: its last day, ${longDay(period.last)}, has not ended ` +
        'by the clocks of this machine and the platform. An email of it would be the only one: send it after that day.',
    );
  const notice = await noticeOf(context, warehouse, mailing, period);
  const key = { report: mailing.report.name, project: mailing.project, period: period.name };
  return handOver(context, notice, key, to);
}
