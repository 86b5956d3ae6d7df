import { z } from 'zod';
import type { SelectNow } from '../agents/plan.js';
import { isSameRecipient, type MailAudience, type Recipient } from '../config/recipients.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, daysIn, lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { AUDIENCES, viewsBy } from '../format/audience.js';
import { inSequence, longDay, shortDayRange } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import { composeAll, type Notice } from '../mail/compose.js';
import { deliver } from '../mail/deliver.js';
import {
  ALL_PROJECTS,
  type DeliveryAdmission,
  type Figures,
  mayHaveArrived,
  type Sent,
} from '../mail/delivery.js';
import { expectSendable, type ReportDefinition } from '../reports/definition.js';
import { eachLoaded, NothingLoadedError } from '../reports/coverage.js';
import { type Calendar, type Period, periodNamed, periodOf } from '../reports/period.js';
import { digestOf, prepareReport, type ReportPlace } from '../reports/render.js';
import { type Delivery, readDeliveries, readDeliveriesOf } from '../state/emails.js';
import type { State } from '../state/state.js';
import { readSql } from '../columns.js';
import type { Reader } from '../history/duckdb.js';
import type { Parts, WorkspaceView } from './step.js';

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

/** A period of a mailing to be sent. */
interface DueMailing {
  readonly mailing: Mailing;
  readonly period: Period;
  readonly recipients: readonly Recipient[];
  readonly admission: DeliveryAdmission;
  /** The history. */
  readonly reader: Reader;
  readonly selectNow: SelectNow;
}

/** Sends a period of a mailing to the recipients whose deliveries may be attempted. */
export async function sendMailing(
  parts: Parts,
  { mailing, period, recipients, admission, reader, selectNow }: DueMailing,
): Promise<Sent> {
  const { workspace, state, session } = parts;
  const { report, project } = mailing;
  if (period.last > lastEndedDay(session.now()))
    throw new ConfigurationError(
      `${report.name} ${period.name} was not emailed: its last day, ${longDay(period.last)}, has not ended ` +
        'by the clocks of this machine and the platform. It is emailed only once, so send it after that day.',
    );
  const now = session.now();
  const notice = await reportNotice({ place: workspace, state, reader, now, selectNow }, mailing, period);
  const key = { report: report.name, project, period: period.name };
  return deliver(parts, await composeAll(parts, notice, key, recipients), admission);
}

/** What notices are written from. */
interface NoticeSources {
  readonly place: ReportPlace;
  readonly state: State;
  readonly reader: Reader;
  readonly now: Date;
  readonly selectNow?: SelectNow;
}

/**
 * The content of a mailing about a period. Throws a `NothingLoadedError` when nothing is loaded for
 * any project.
 */
export async function reportNotice(
  { place, state, reader, now, selectNow }: NoticeSources,
  mailing: Mailing,
  period: Period,
): Promise<Notice> {
  const { report, audience, projects } = mailing;
  expectSendable(report, audience);
  const before = periodOf(period.kind, addDays(period.first, -1), place.settings.reports);
  const sent = report.model === 'weekly' ? sentAbout(state, mailing, before) : undefined;
  const cautions =
    sent === undefined ? [] : lateData(audience, sent, before, await readViews(reader, mailing, before));
  const figures = await readViews(reader, mailing, period);
  const { where } = audience;
  // A pattern may be mistyped, and what has no views would look like what is not shown.
  if (where !== undefined && figures.human + figures.ai === 0)
    cautions.push(`No page that matches ${where} was viewed on these days.`);
  const unsent = unsentBefore(state, mailing, period, place.settings.reports);
  const request = { report, period, where, now, ...(selectNow && { selectNow }), cautions, unsent };
  const { results: editions, empty } = await eachLoaded(projects, (project) =>
    prepareReport(place, reader, project, request),
  );
  const [first] = editions;
  if (first === undefined) throw new NothingLoadedError(`${report.name} covers no project.`);
  const { subject, pageUrl, model, chat, email } = audience.digest
    ? await digestOf(place, request, editions, empty)
    : first;
  return { kind: 'report', subject, pageUrl, chat: chat(), data: model, figures, email };
}

/** The stored days of the projects of a mailing, and the views on them of the pages that it is about. */
interface PeriodFigures extends Figures {
  /** As many days as the projects with any stored day should have. */
  readonly expected: number;
}

const VIEWS = readSql(import.meta.url, 'statements/mailing-views.sql');
const viewsRow = z.object({ days: z.int(), projects: z.int(), human: z.int(), ai: z.int() });

export async function readViews(
  reader: Reader,
  { projects, audience: { where: pages = '*' } }: Pick<Mailing, 'projects' | 'audience'>,
  { first, last }: Period,
): Promise<PeriodFigures> {
  const ids = JSON.stringify(projects.map(({ id }) => id));
  const [stored] = await reader.query(VIEWS, viewsRow, { projects: ids, first, last, pages });
  const { days = 0, human = 0, ai = 0, projects: loaded = 0 } = stored ?? {};
  return { days, human, ai, expected: daysIn({ first, last }).length * Math.max(1, loaded) };
}

/**
 * The deliveries of the report of a mailing that concern it: those about its project and those about all of them, or for
 * a digest, those about any.
 */
export function deliveriesOf(state: State, { report: { name: report }, project }: Mailing): Delivery[] {
  if (project === ALL_PROJECTS) return readDeliveries(state).filter((one) => one.report === report);
  return [project, ALL_PROJECTS].flatMap((about) => readDeliveriesOf(state, { report, project: about }));
}

/** What the recipients of a mailing were first sent about a period, with its numbers; undefined if nothing. */
const sentAbout = (state: State, { report, project, audience }: Mailing, period: Period) =>
  readDeliveriesOf(state, { report: report.name, project })
    .filter((one) => one.period === period.name && one.state === 'sent' && one.days_covered !== null)
    .filter(({ recipient }) => audience.to.some((to) => isSameRecipient(to, recipient)))
    .sort((one, two) => one.tried_at.getTime() - two.tried_at.getTime())[0];

/** A smaller change since the last email is not mentioned. */
const LEAST_CHANGE = 0.01;

/** A sentence about the totals in the email of the period before that later loads have changed; none if they have not. */
function lateData(audience: MailAudience, sent: Delivery, period: Period, now: Figures): string[] {
  // Whole weeks more or fewer mean that the digest had other projects.
  const daysMore = now.days - (sent.days_covered ?? 0);
  if (daysMore !== 0 && daysMore % 7 === 0) return [];
  const changed = AUDIENCES.map((of) => ({ of, said: sent[of] ?? 0, now: now[of] })).filter(
    ({ said, now }) => said !== now && Math.abs(now - said) >= LEAST_CHANGE * said,
  );
  if (changed.length === 0) return [];
  const before = inSequence(changed.map(({ of, said }) => viewsBy(of, said)));
  const after = inSequence(changed.map(({ now }) => thousands(now)));
  const said = audience.digest ? 'added up to' : 'said';
  return [`The email about ${shortDayRange(period)} ${said} ${before}; with late data, it is now ${after}.`];
}

/** An email names no more periods than these, the newest. */
const MOST_NAMED = 8;

/**
 * The periods before this one that nobody was sent anything about, since the last one that somebody was: after weeks
 * offline, only the newest is emailed. The oldest first; none before the first email.
 */
export function unsentBefore(state: State, mailing: Mailing, { kind, first }: Period, calendar: Calendar) {
  const lastDays = deliveriesOf(state, mailing)
    .filter(mayHaveArrived)
    .filter(({ recipient }) => mailing.audience.to.some((to) => isSameRecipient(to, recipient)))
    .flatMap(({ period }) => periodNamed(period, calendar)?.last ?? [])
    .filter((last) => last < first);
  const newest = lastDays.toSorted().at(-1);
  const unsent: Period[] = [];
  // A report about agents says how everything stands now, whatever was sent before.
  if (newest === undefined || mailing.report.model === 'improve') return unsent;
  for (let end = addDays(first, -1); end > newest && unsent.length < MOST_NAMED;) {
    const period = periodOf(kind, end, calendar);
    unsent.unshift(period);
    end = addDays(period.first, -1);
  }
  return unsent;
}
