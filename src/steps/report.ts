import { existsSync } from 'node:fs';
import { addHours, max, min, subHours, subMilliseconds } from 'date-fns';
import { z } from 'zod';
import { type SelectNow, selectingNow } from '../agents/plan.js';
import { nextScheduled } from '../config/cron.js';
import { isSameRecipient } from '../config/recipients.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, lastEndedDay, startOfDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { inSequence } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { addSent, type Sent, sentOf, type Wait, whatIsDue } from '../mail/delivery.js';
import { askingOnce, type Reader } from '../history/duckdb.js';
import { findReport, listReports, type ReportDefinition } from '../reports/definition.js';
import { NothingLoadedError } from '../reports/coverage.js';
import { pageFile, writePage } from '../reports/report-pages.js';
import { lastEnded, type Period, periodNamed } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { type DeliveryKey, readDeliveries } from '../state/emails.js';
import { readSql, timestampColumn } from '../columns.js';
import { loadNotes } from './notes.js';
import { byBothClocks, type Parts, type StepResult, withOutage } from './step.js';
import { readLastRuns } from '../state/runs.js';
import { deliveriesOf, type Mailing, mailingsOf, readViews, sendMailing, unsentBefore } from './mailing.js';

interface Reported extends Sent {
  /** The pages of all reports, and where they are. */
  readonly pages: { project: ProjectSettings; subject: string; file: string }[];
  /** Reports that are not emailed yet because days of their period, or views of these days, have not come. */
  readonly held: (Omit<DeliveryKey, 'recipient'> & Wait)[];
  /** When emails may be sent, or sent again, later. */
  readonly dueAt: Date[];
}

/**
 * Renders every report of every project for its last period that has ended, if days were loaded since the last time
 * or the page is missing, and emails those that are due. A failure affects neither the other reports nor the other
 * projects.
 */
export async function reportStep(given: Parts): Promise<StepResult<Reported>> {
  const parts = await byBothClocks(given);
  const { workspace, state, sender, store, session } = parts;
  const { settings, projects, workspaceDir, reportsDir } = workspace;
  const { now, signal } = session;
  const sent: Sent = { deliveries: [], pausedBy: undefined, silentHosts: new Set() };
  const detail: Reported = { pages: [], held: [], dueAt: [], ...sent };
  const { pages } = detail;
  const { reports, broken } = await listReports(workspaceDir);
  const problems: unknown[] = [...broken, sender.otherPlace()];
  problems.push(await loadNotes(workspace, state));
  store.refresh();
  const daysLate = await readDaysLate(parts);
  const reported = readLastRuns(state, now()).find(({ step }) => step === 'report')?.done_at ?? null;
  const loaded = await store.query(LOADED_SINCE_REPORT, z.object({ project: z.string() }), { reported });
  const hasNews = new Set(loaded.map(({ project }) => project));
  /** After an interruption, nothing is begun. */
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      signal.throwIfAborted();
      await work();
    } catch (error) {
      // A site too new for a full week has nothing to report yet, which is not an error.
      if (!(error instanceof NothingLoadedError)) problems.push(error);
    }
  };
  for (const name of Object.keys(settings.reports.audiences))
    await attempt(() => findReport(name, workspaceDir));
  const reader = askingOnce(store);
  const selectNow = selectingNow({ reader, state, rules: settings.improve, now: now(), signal });
  for (const report of reports) {
    const latest = lastEnded(report.period, now(), settings.reports);
    const isRendered = ({ id }: ProjectSettings, period: Period) =>
      existsSync(pageFile(reportsDir, id, { name: report.name, period }));
    const render = async (project: ProjectSettings, period: Period) => {
      if (isRendered(project, period) && !hasNews.has(project.id)) return;
      const request = { report, period, now: now(), selectNow };
      const prepared = await prepareReport(workspace, reader, project, request);
      const file = await writePage(reportsDir, project.id, prepared);
      pages.push({ project, file, subject: prepared.subject });
    };
    for (const project of projects) {
      const complete = lastEnded(report.period, subHours(now(), 24 * daysLate([project])), settings.reports);
      if (complete.name !== latest.name) await attempt(() => render(project, complete));
      await attempt(() => render(project, latest));
    }
    await attempt(async () => {
      for (const mailing of mailingsOf(workspace, report)) {
        const days = daysLate(mailing.projects);
        const due = lastEnded(report.period, subHours(now(), 24 * days), settings.reports);
        // The email leads to their pages.
        for (const period of unsentBefore(state, mailing, due, settings.reports))
          for (const project of mailing.projects)
            if (!isRendered(project, period)) await attempt(() => render(project, period));
        await attempt(() => sendDue(parts, { reader, selectNow, mailing, daysLate: days }, detail));
      }
    });
  }
  const { words, error } = sentOf(detail);
  const unknown = readDeliveries(state).filter((delivery) => delivery.state === 'unknown').length;
  const summary =
    `${counted(pages.length, 'page')} rendered, ${words}` +
    (unknown === 0 ? '' : `; ${unknown} may or may not have arrived: readership status`);
  // With a weekly schedule, an email that waits would otherwise be sent a week late.
  const resumeAt = detail.held.length > 0 ? addHours(now(), 1) : undefined;
  const waiting = readDeliveries(state).flatMap(({ next_attempt_at: at }) => at ?? []);
  const later = [...detail.dueAt, ...waiting].filter((at) => at > now());
  const dueAt = later.length === 0 ? undefined : min(later);
  return withOutage({ detail, summary, resumeAt, dueAt }, [...together(problems), error]);
}

/**
 * A step records one error, so the configuration errors of several reports become one that lists
 * each once.
 */
function together(problems: readonly unknown[]): unknown[] {
  const broken = problems.filter((problem) => problem instanceof ConfigurationError);
  const messages = new Set(broken.map(messageOf));
  if (messages.size < 2) return [...problems];
  const all = new ConfigurationError([...messages].join('\n'), { cause: broken[0] });
  return [all, ...problems.filter((problem) => !(problem instanceof ConfigurationError))];
}

const FIRST_LOAD = readSql(import.meta.url, 'statements/first-load.sql');
const firstLoad = z.object({ began_at: timestampColumn.nullable() });

/**
 * Sends every period of a mailing that is due. Adds to `reported`. The latest period whose views have come
 * goes to everyone; earlier ones only to recipients whose delivery is retried, so that nobody gets old news
 * after weeks offline, or without a mail server.
 */
async function sendDue(
  parts: Parts,
  { daysLate, ...given }: { reader: Reader; selectNow: SelectNow; mailing: Mailing; daysLate: number },
  reported: Reported,
): Promise<void> {
  const { workspace, state, sender, outgoing, session } = parts;
  const { reader, mailing } = given;
  const { settings } = workspace;
  const { now, signal } = session;
  const { report, audience, project, projects } = mailing;
  const known = deliveriesOf(state, mailing);
  const own = known.filter((one) => one.project === project);
  const held = (period: string, wait: Wait) =>
    reported.held.push({ report: report.name, project, period, ...wait });
  const latest = lastEnded(report.period, now(), settings.reports);
  const current = lastEnded(report.period, subHours(now(), 24 * daysLate), settings.reports);
  if (latest.name !== current.name && own.every(({ period }) => period !== latest.name)) {
    const until = startOfDay(addDays(latest.last, LONGEST_DELAY_DAYS));
    held(latest.name, { for: 'views that have not arrived yet', until });
  }
  const ids = JSON.stringify(projects.map(({ id }) => id));
  const [loads] = await reader.query(FIRST_LOAD, firstLoad, { projects: ids, now: now() });
  const waiting = own.filter(({ state }) => state === 'waiting').map(({ period }) => period);
  for (const name of new Set([current.name, ...waiting])) {
    const period = periodNamed(name, settings.reports);
    if (period === undefined) continue;
    const isWaiting = (to: string) =>
      own.some((one) => one.period === name && one.state === 'waiting' && isSameRecipient(one.recipient, to));
    const { expected, days } = await readViews(reader, mailing, period);
    const { from, until } = timesOf(report, period, settings, daysLate, loads?.began_at ?? null);
    reported.dueAt.push(from);
    const due = whatIsDue(
      {
        from,
        until,
        days: expected,
        daysLoaded: days,
        recipients: name === current.name ? audience.to : audience.to.filter(isWaiting),
        via: () => outgoing.transport().via,
        project,
        deliveries: known.filter((delivery) => delivery.period === name),
      },
      now(),
    );
    if (due === undefined) continue;
    if ('until' in due) held(name, due);
    else if (!signal.aborted && sender.otherPlace() === undefined) {
      const { recipients } = due;
      const sent = await sendMailing(parts, { ...given, period, recipients, admission: 'due' });
      const { deliveries, pausedBy, silentHosts } = sent;
      addSent(reported, sent);
      const untried = recipients.length - deliveries.length;
      const waitsFor = [pausedBy === undefined ? [] : 'the mail server', ...silentHosts].flat();
      if (waitsFor.length > 0 && untried > 0)
        held(name, { for: `${inSequence(waitsFor)} (${counted(untried, 'recipient')})`, until: null });
    }
  }
}

const LOADED_SINCE_REPORT = readSql(import.meta.url, 'statements/loaded-since-report.sql');

const DAYS_LATE = readSql(import.meta.url, 'statements/days-late.sql');

/** The most days after its last day that a period waits for late views. */
const LONGEST_DELAY_DAYS = 10;

/** For how many of the latest days, of some projects together, an email waits because their views have not all come. */
async function readDaysLate({ store, session: { now } }: Parts) {
  const row = z.object({ project: z.string(), days: z.int() });
  // Yesterday is a day old.
  const most = LONGEST_DELAY_DAYS - 1;
  const rows = await store.query(DAYS_LATE, row, { yesterday: lastEndedDay(now()), most });
  const late = new Map(rows.map(({ project, days }) => [project, days]));
  return (of: readonly ProjectSettings[]): number => Math.max(0, ...of.map(({ id }) => late.get(id) ?? 0));
}

/** How long an email waits for missing days, also after the first load of a new project. */
const PATIENCE_HOURS = 24;

/**
 * When a period may be emailed, which is later if views come late, and how long it waits for missing days
 * after the export that could load the last, and after the first load of its projects.
 */
function timesOf(
  report: ReportDefinition,
  { last }: Period,
  { schedule }: Settings,
  daysLate: number,
  firstLoad: Date | null,
) {
  const ended = startOfDay(addDays(last, 1));
  const next = (cron: string) => nextScheduled(cron, schedule.timezone, subMilliseconds(ended, 1));
  // The last day is read again when its views have come.
  const first = report.schedule ?? (daysLate > 0 ? schedule.export : undefined);
  return {
    from: first === undefined ? ended : addHours(next(first), 24 * daysLate),
    until: addHours(max([next(schedule.export), firstLoad ?? 0]), PATIENCE_HOURS),
  };
}
