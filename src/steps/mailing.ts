import { isSameRecipient, type MailAudience, type Recipient } from '../config/recipients.js';
import type { ProjectSettings } from '../config/schema.js';
import { z } from 'zod';
import { addDays, daysIn, lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { AUDIENCES, viewsBy } from '../format/audience.js';
import { inSequence, longDay } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import { composeAll, type Notice } from '../mail/compose.js';
import { deliver } from '../mail/deliver.js';
import { ALL_PROJECTS, type DeliveryAdmission, type Figures } from '../mail/delivery.js';
import { expectSendable, type ReportDefinition } from '../reports/definition.js';
import { eachLoaded, NothingLoadedError } from '../reports/coverage.js';
import { type Period, periodOf } from '../reports/period.js';
import { digestOf, prepareReport, type ReportPlace } from '../reports/render.js';
import { type Delivery, type DeliveryKey, readDeliveries, readDeliveriesOf } from '../state/emails.js';
import type { State } from '../state/state.js';
import { readSql } from '../columns.js';
import type { Reader } from '../history/query.js';
import type { Using, WorkspaceView } from './parts.js';

/** What goes to every recipient of an audience: about one project, or a digest about all. */
export interface Mailing {
  readonly report: ReportDefinition;
  readonly audience: MailAudience;
  readonly projects: readonly ProjectSettings[];
  /** The project of its deliveries: a project id, or `-` for all projects. */
  readonly project: string;
}

/** The configured mailings of a report; none if it has no recipients. */
export function mailingsOf(
  { settings, projects }: Pick<WorkspaceView, 'settings' | 'projects'>,
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

/** What notices are written from. */
interface NoticeSources {
  readonly place: ReportPlace;
  readonly state: State;
  readonly reader: Reader;
}

/**
 * The content of a mailing about a period. Throws a `NothingLoadedError` when nothing is loaded for
 * any project.
 */
export async function reportNotice(
  sources: NoticeSources,
  mailing: Mailing,
  period: Period,
): Promise<Notice> {
  const { place, reader } = sources;
  const { report, audience, projects } = mailing;
  expectSendable(report, audience);
  const lateData = await lateDataWords(sources, mailing, period);
  const request = { report, period, where: audience.where, cautions: lateData };
  const prepare = (project: ProjectSettings) => prepareReport(place, reader, project, request);
  const { results: editions } = await eachLoaded(projects, prepare);
  const [first] = editions;
  if (first === undefined) throw new NothingLoadedError(`${report.name} covers no project.`);
  const { days, human, ai } = await storedViews(reader, mailing, period);
  const whole = audience.digest ? await digestOf(place, request, editions) : first;
  return {
    kind: 'report',
    subject: whole.subject,
    pageUrl: whole.pageUrl,
    chat: whole.chat(),
    data: whole.model,
    figures: { days, human, ai },
    email: () => whole.email(),
  };
}

const PERIOD_VIEWS = readSql(import.meta.url, 'statements/period-views.sql');
const periodViews = z.object({ days: z.int(), human: z.int(), ai: z.int() });

/**
 * The loaded days of a period with the views of the pages of a mailing, and how many days to expect of the
 * projects that have any.
 */
export async function storedViews(
  reader: Reader,
  { projects, audience: { where: pages = '*' } }: Pick<Mailing, 'projects' | 'audience'>,
  { first, last }: Period,
): Promise<Figures & { readonly expected: number }> {
  const stored = { days: 0, human: 0, ai: 0, projects: 0 };
  for (const { id: project } of projects)
    for (const { days, human, ai } of await reader.query(PERIOD_VIEWS, periodViews, {
      project,
      first,
      last,
      pages,
    })) {
      stored.days += days;
      stored.human += human;
      stored.ai += ai;
      stored.projects += days > 0 ? 1 : 0;
    }
  return { ...stored, expected: daysIn({ first, last }).length * Math.max(1, stored.projects) };
}

/** A smaller change since the last email is not mentioned. */
const LEAST_CHANGE = 0.01;

/** A sentence about the totals in last week’s email that later loads have changed; empty if there are none. */
async function lateDataWords(
  { place: { settings }, state, reader }: NoticeSources,
  mailing: Mailing,
  { kind, first }: Period,
): Promise<string[]> {
  const { report, project, audience } = mailing;
  if (report.model !== 'weekly') return [];
  const period = periodOf(kind, addDays(first, -1), settings.reports);
  const sent = readDeliveriesOf(state, { report: report.name, project })
    .filter((one) => one.period === period.name && one.state === 'sent')
    .filter(({ recipient }) => audience.to.some((to) => isSameRecipient(to, recipient)))
    .sort((one, two) => one.tried_at.getTime() - two.tried_at.getTime())
    .find(({ days_covered: days }) => days !== null);
  if (sent === undefined) return [];
  const now = await storedViews(reader, mailing, period);
  // Whole periods more or fewer mean that the digest had other projects.
  const daysMore = now.days - (sent.days_covered ?? 0);
  if (daysMore !== 0 && daysMore % daysIn(period).length === 0) return [];
  const changed = AUDIENCES.map((of) => ({ of, said: sent[of] ?? 0, now: now[of] })).filter(
    ({ said, now }) => said !== now && Math.abs(now - said) >= LEAST_CHANGE * said,
  );
  if (changed.length === 0) return [];
  const before = inSequence(changed.map(({ of, said }) => viewsBy(of, said)));
  const after = inSequence(changed.map(({ now }) => thousands(now)));
  const said = audience.digest ? 'added up to' : 'said';
  return [`Last week’s email ${said} ${before}; with late data, it is now ${after}.`];
}

/**
 * The deliveries of the report of a mailing that concern it: those about its project and those about all of them, or for
 * a digest, those about any.
 */
export function deliveriesOf(state: State, { report: { name: report }, project }: Mailing): Delivery[] {
  if (project === ALL_PROJECTS) return readDeliveries(state).filter((one) => one.report === report);
  return [project, ALL_PROJECTS].flatMap((about) => readDeliveriesOf(state, { report, project: about }));
}

export type SendingParts = Using<'workspace' | 'state' | 'sender' | 'store' | 'outgoing' | 'session'>;

/** Sends a notice to the recipients whose deliveries may be attempted; returns those deliveries. */
export async function sendNotice(
  { workspace, state, sender, outgoing, session }: Omit<SendingParts, 'store'>,
  notice: Notice,
  key: Omit<DeliveryKey, 'recipient'>,
  recipients: readonly Recipient[],
  admission: DeliveryAdmission,
): Promise<Delivery[]> {
  const { transport, channels } = outgoing;
  const { now, signal } = session;
  const { mail } = workspace.settings;
  const messages = await composeAll(notice, key, recipients, mail, channels, now());
  const task = { state, sender, now, signal, transport: transport(), admission };
  return deliver(task, messages);
}

/** Sends a mailing of a period, as `sendNotice` does. */
export async function sendMailing(
  parts: SendingParts,
  mailing: Mailing,
  period: Period,
  recipients: readonly Recipient[],
  admission: DeliveryAdmission,
): Promise<Delivery[]> {
  const { workspace, state, store, session } = parts;
  if (period.last > lastEndedDay(session.now()))
    throw new ConfigurationError(
      `${mailing.report.name} ${period.name} was not emailed: its last day, ${longDay(period.last)}, has not ended ` +
        'by the clocks of this machine and the platform. It is emailed only once, so send it after that day.',
    );
  const notice = await reportNotice({ place: workspace, state, reader: store }, mailing, period);
  const key = { report: mailing.report.name, project: mailing.project, period: period.name };
  return sendNotice(parts, notice, key, recipients, admission);
}
