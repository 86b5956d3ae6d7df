import { addHours, subMilliseconds } from 'date-fns';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, dayOf, startOfDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { counted } from '../format/numbers.js';
import { type Delivery, type Due, whatIsDue } from '../mail/delivery.js';
import { DeliveryError, readDeliveries } from '../mail/ledger.js';
import { findReport, listReports, type ReportDefinition } from '../reports/definition.js';
import { NothingLoadedError } from '../reports/coverage.js';
import { keptPage, sourceOfPages, writePage } from '../reports/pages.js';
import { lastEnded, type Period, periodNamed } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { byBothClocks, type StepContext, type StepResult, withOutage } from './step.js';
import { sendCorrections } from './corrections.js';
import { type Mailing, mailingsOf, sendMailing, storedOf } from './mailing.js';

/** A report that is not emailed yet because days of its period are missing. */
export interface HeldReport {
  readonly report: string;
  readonly period: string;
  /** As in the ledger of deliveries. */
  readonly project: string;
  readonly due: Extract<Due, { kind: 'waits' }>;
}

/** Deliveries and the reports that wait for days. */
interface Mailed {
  readonly held: HeldReport[];
  /** Attempted now, or found to be of unknown outcome when the database was opened. */
  readonly deliveries: Delivery[];
}

interface Reported extends Mailed {
  /** The pages of all reports, and where they are. */
  readonly pages: { project: ProjectSettings; subject: string; file: string }[];
}

/**
 * Renders every report of every project for its last period that has ended, unless its page would
 * be the same, and emails those that are due. A failure affects neither the other reports nor the
 * other projects.
 */
export async function reportStep(given: StepContext): Promise<StepResult<Reported>> {
  const context = await byBothClocks(given);
  const { settings, projects, warehouse, workspaceDir, reportsDir, now, signal } = context;
  const detail: Reported = { pages: [], held: [], deliveries: [...context.unknownDeliveries] };
  const { pages, deliveries } = detail;
  const { reports, broken } = await listReports(workspaceDir);
  const problems: unknown[] = [...broken, context.elsewhere ?? []].flat();
  // If a template is broken, rendering reports it.
  const sourceOf = await sourceOfPages(warehouse, workspaceDir, settings, dayOf(now())).catch(
    () => undefined,
  );
  let rendered = 0;
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
  for (const report of reports) {
    const period = lastEnded(report.period, now(), settings.reports);
    for (const project of projects)
      await attempt(async () => {
        const source = sourceOf?.(report, [project, period]);
        const kept = await keptPage(reportsDir, project.id, { name: report.name, period }, source);
        if (kept !== undefined) return pages.push({ project, ...kept });
        const prepared = await prepareReport(context, warehouse, project, { report, period });
        const file = await writePage(reportsDir, project.id, prepared, source);
        rendered++;
        return pages.push({ project, file, subject: prepared.subject });
      });
    await attempt(async () => {
      for (const mailing of mailingsOf(context, report))
        await attempt(() => mailDue(context, mailing, detail));
    });
  }
  const undelivered = deliveries.filter(({ state }) => state !== 'sent');
  if (undelivered.length > 0) problems.push(new DeliveryError(undelivered));
  const sent = deliveries.length - undelivered.length;
  const noun = deliveries.every(({ via }) => via === 'smtp' || via === 'outbox') ? 'email' : 'report';
  const summary = `${counted(rendered, 'page')} rendered, ${counted(sent, noun)} sent, ${undelivered.length} unconfirmed`;
  return withOutage({ detail, summary }, together(problems));
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

/** Sends every period of a mailing that is due, and corrections of what was sent before. Adds to `mailed`. */
async function mailDue(context: StepContext, mailing: Mailing, mailed: Mailed): Promise<void> {
  const { report, project } = mailing;
  const ofMailing = await readDeliveries(context.warehouse, { report: report.name, project });
  for (const { period, due } of await duePeriods(context, mailing, ofMailing)) {
    if (due.kind === 'waits') mailed.held.push({ report: report.name, period: period.name, project, due });
    if (due.kind !== 'due' || context.signal.aborted || context.elsewhere !== undefined) continue;
    const to = { recipients: due.recipients, admission: 'due' as const };
    mailed.deliveries.push(...(await sendMailing(context, mailing, period, to)));
  }
  if (context.elsewhere !== undefined) return;
  mailed.deliveries.push(...(await sendCorrections(context, mailing, ofMailing)));
}

/**
 * The periods of a mailing to consider: the latest that has ended, for everyone; earlier ones, only
 * for recipients whose delivery is waiting. So nobody gets old news after weeks offline.
 */
async function duePeriods(
  context: StepContext,
  { report, audience, projects }: Mailing,
  deliveries: readonly Delivery[],
): Promise<{ period: Period; due: Due }[]> {
  const { settings, warehouse, now } = context;
  const current = lastEnded(report.period, now(), settings.reports);
  const waiting = new Set(deliveries.flatMap(({ state, period }) => (state === 'waiting' ? period : [])));
  waiting.delete(current.name);
  const earlier = [...waiting].flatMap((name) => periodNamed(name, settings.reports) ?? []);
  return Promise.all(
    [current, ...earlier].map(async (period) => {
      const ofPeriod = deliveries.filter((delivery) => delivery.period === period.name);
      const isOpen = (recipient: string) =>
        period === current || ofPeriod.some((delivery) => delivery.recipient === recipient);
      const { expected, days } = await storedOf(warehouse, projects, period);
      const state = {
        days: expected,
        daysLoaded: days,
        ...timesOf(report, period, settings),
        recipients: audience.to.filter(isOpen),
        deliveries: ofPeriod,
      };
      return { period, due: whatIsDue(state, now()) };
    }),
  );
}

/** How long an email waits for missing days. */
const PATIENCE_HOURS = 24;

/**
 * When a period may be emailed, and how long it waits for missing days after the export that could
 * load the last.
 */
function timesOf(report: ReportDefinition, { last }: Period, { schedule }: Settings) {
  const ended = startOfDay(addDays(last, 1));
  const next = (cron: string) => nextScheduled(cron, schedule.timezone, subMilliseconds(ended, 1));
  const until = addHours(next(schedule.export), PATIENCE_HOURS);
  return { from: report.schedule === undefined ? ended : next(report.schedule), until };
}
