import { addHours, subMilliseconds } from 'date-fns';
import { z } from 'zod';
import { nextScheduled } from '../config/cron.js';
import { MAILED_REPORTS, type ProjectSettings, type Settings } from '../config/schema.js';
import { addDays, daysIn, startOfDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { counted } from '../format/numbers.js';
import { DeliveryError } from '../mail/deliver.js';
import { type Delivery, type Due, whatIsDue } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { findReport, type ReportDefinition } from '../reports/catalog.js';
import { NothingLoadedError } from '../reports/errors.js';
import { writeIndex, writePage } from '../reports/pages.js';
import { lastEnded, type Period, periodNamed } from '../reports/period.js';
import { readSql } from '../warehouse/query.js';
import { byBothClocks, type StepContext, type StepResult } from './context.js';
import { mailReport, recipientsOf, reportOn } from './mailing.js';
import { withOutage } from './runner.js';

/** A page that was rendered, and where it is. */
interface RenderedPage {
  readonly project: ProjectSettings;
  readonly subject: string;
  readonly file: string;
}

/** A report that is not mailed yet because days of its period are missing. */
export interface HeldReport {
  readonly project: ProjectSettings;
  readonly report: string;
  readonly period: string;
  readonly due: Extract<Due, { kind: 'waits' }>;
}

export interface Reported {
  readonly pages: readonly RenderedPage[];
  readonly held: readonly HeldReport[];
  /** Attempted now, or found to be of unknown outcome when the database was opened. */
  readonly deliveries: readonly Delivery[];
}

/**
 * Renders the weekly page of every project for the last week that has ended, and mails every report
 * that is due. What fails stops neither the other reports nor the other projects.
 */
export async function reportStep(given: StepContext): Promise<StepResult<Reported>> {
  const context = await byBothClocks(given);
  const { settings, projects, warehouse, workspaceDir, reportsDir, now, signal } = context;
  const pages: RenderedPage[] = [];
  const held: HeldReport[] = [];
  const deliveries = [...context.unknownDeliveries];
  const problems: unknown[] = [];
  const attempt = (work: () => Promise<unknown>) => keepingProblems(problems, signal, work);
  for (const project of projects) {
    await attempt(async () => {
      const report = await findReport('weekly', workspaceDir);
      const period = lastEnded(report.period, now(), settings.reports);
      const weekly = await reportOn(context, warehouse, project, report, period);
      const file = await writePage(reportsDir, project.id, weekly);
      pages.push({ project, file, subject: weekly.subject });
    });
    for (const name of MAILED_REPORTS)
      await attempt(async () => {
        const mailed = await mailDue(context, project, name);
        deliveries.push(...mailed.deliveries);
        held.push(...mailed.held);
      });
  }
  await attempt(() => writeIndex(reportsDir, { workspaceDir, calendar: settings.reports }));
  const undelivered = deliveries.filter(({ state }) => state !== 'sent');
  if (undelivered.length > 0) problems.push(new DeliveryError(undelivered));
  const sent = deliveries.length - undelivered.length;
  const summary = `${counted(pages.length, 'page')} rendered, ${counted(sent, 'email')} sent, ${undelivered.length} unconfirmed`;
  return withOutage(
    { detail: { pages, held, deliveries }, summary, changed: deliveries.length > 0 },
    together(problems),
  );
}

/** After an interruption, nothing begins. */
async function keepingProblems(
  problems: unknown[],
  signal: AbortSignal,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    signal.throwIfAborted();
    await work();
  } catch (error) {
    // A site too young for a whole week has nothing to report yet, which is no problem.
    if (!(error instanceof NothingLoadedError)) problems.push(error);
  }
}

/** A step records one error, so what is broken in several reports becomes one, each problem named once. */
function together(problems: readonly unknown[]): unknown[] {
  const broken = problems.filter((problem) => problem instanceof ConfigurationError);
  const messages = new Set(broken.map(messageOf));
  if (messages.size < 2) return [...problems];
  const all = new ConfigurationError([...messages].join('\n'), { cause: broken[0] });
  return [all, ...problems.filter((problem) => !(problem instanceof ConfigurationError))];
}

/** Mails a report of every period that is due. */
async function mailDue(
  context: StepContext,
  project: ProjectSettings,
  name: string,
): Promise<{ deliveries: Delivery[]; held: HeldReport[] }> {
  const deliveries: Delivery[] = [];
  const held: HeldReport[] = [];
  const report = await findReport(name, context.workspaceDir);
  for (const { period, due } of await duePeriods(context, project, report)) {
    if (due.kind === 'waits') held.push({ project, report: name, period: period.name, due });
    if (due.kind !== 'due' || context.signal.aborted) continue;
    const prepared = await reportOn(context, context.warehouse, project, report, period);
    const to = { recipients: due.recipients, admission: 'due' as const };
    deliveries.push(...(await mailReport(context, project, prepared, to)));
  }
  return { deliveries, held };
}

const DAYS_LOADED = readSql(import.meta.url, 'statements/days-loaded.sql');

/**
 * What is due of a report: the last period that has ended, to everyone; earlier ones only to those
 * whose delivery still waits. After weeks offline, nobody is sent old news.
 */
async function duePeriods(
  context: StepContext,
  project: ProjectSettings,
  report: Pick<ReportDefinition, 'name' | 'period'>,
): Promise<{ period: Period; due: Due }[]> {
  const { settings, warehouse, now } = context;
  const recipients = recipientsOf(settings, report.name);
  if (recipients.length === 0) return [];
  const deliveries = (await readDeliveries(warehouse)).filter(
    (delivery) => delivery.report === report.name && delivery.project === project.id,
  );
  const current = lastEnded(report.period, now(), settings.reports);
  const waiting = new Set(deliveries.flatMap(({ state, period }) => (state === 'waiting' ? period : [])));
  waiting.delete(current.name);
  // An email that was begun by a clock that was ahead waits until its period has ended.
  const earlier = [...waiting]
    .flatMap((name) => periodNamed(name, settings.reports) ?? [])
    .filter(({ last }) => last <= current.last);
  return Promise.all(
    [current, ...earlier].map(async (period) => {
      const ofPeriod = deliveries.filter((delivery) => delivery.period === period.name);
      const isOpen = (recipient: string) =>
        period === current || ofPeriod.some((delivery) => delivery.recipient === recipient);
      const state = {
        days: daysIn(period).length,
        daysLoaded: await daysLoaded(context, project, period),
        until: patienceEnd(period, settings),
        recipients: recipients.filter(isOpen),
        deliveries: ofPeriod,
      };
      return { period, due: whatIsDue(state, now()) };
    }),
  );
}

/** Patience begins with the export that could have loaded the last day. */
function patienceEnd({ last }: Period, { schedule, reports }: Settings): Date {
  const ended = startOfDay(addDays(last, 1));
  const exportAt = nextScheduled(schedule.export, schedule.timezone, subMilliseconds(ended, 1));
  return addHours(exportAt, reports.patienceHours);
}

async function daysLoaded(
  { warehouse }: StepContext,
  project: ProjectSettings,
  { first, last }: Period,
): Promise<number> {
  const rows = await warehouse.query(DAYS_LOADED, z.object({ days: z.int() }), {
    ...{ project: project.id, first, last },
  });
  return rows[0]?.days ?? 0;
}
