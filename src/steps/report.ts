import { addHours, subMilliseconds } from 'date-fns';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, dayOf, startOfDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { counted } from '../format/numbers.js';
import { DeliveryError } from '../mail/deliver.js';
import { type Delivery, type Due, whatIsDue } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { findReport, listReports, type ReportDefinition } from '../reports/definition.js';
import { NothingLoadedError } from '../reports/errors.js';
import { keptPage, writePage } from '../reports/pages.js';
import { lastEnded, type Period, periodNamed } from '../reports/period.js';
import { sourceOfPages } from '../reports/source.js';
import { byBothClocks, type StepContext, type StepResult } from './context.js';
import { sendCorrections } from './corrections.js';
import { type Mailing, mailingsOf, reportOn, sendMailing, storedOf } from './mailing.js';
import { withOutage } from './runner.js';

/** The page of a report, and where it is. */
interface RenderedPage {
  readonly project: ProjectSettings;
  readonly subject: string;
  readonly file: string;
}

/** A report that is not mailed yet because days of its period are missing. */
export interface HeldReport {
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
 * Renders every report of every project for its last period that has ended, unless its page would be the same, and
 * emails those that are due. What fails stops neither the other reports nor the other projects.
 */
export async function reportStep(given: StepContext): Promise<StepResult<Reported>> {
  const context = await byBothClocks(given);
  const { settings, projects, warehouse, workspaceDir, reportsDir, now, signal } = context;
  const pages: RenderedPage[] = [];
  const held: HeldReport[] = [];
  const deliveries = [...context.unknownDeliveries];
  const { reports, broken } = await listReports(workspaceDir);
  const problems: unknown[] = [...broken];
  // Rendering says what is wrong with a template.
  const sourceOf = await sourceOfPages(warehouse, workspaceDir, settings, dayOf(now())).catch(
    () => undefined,
  );
  let rendered = 0;
  const attempt = (work: () => Promise<unknown>) => keepingProblems(problems, signal, work);
  for (const name of Object.keys(settings.reports.audiences))
    await attempt(() => findReport(name, workspaceDir));
  for (const report of reports) {
    const period = lastEnded(report.period, now(), settings.reports);
    for (const project of projects)
      await attempt(async () => {
        const source = sourceOf?.(report, [project, period]);
        const kept = await keptPage(reportsDir, project.id, { name: report.name, period }, source);
        if (kept !== undefined) pages.push({ project, ...kept });
        else {
          const prepared = await reportOn(context, warehouse, project, { report, period });
          const file = await writePage(reportsDir, project.id, prepared, source);
          pages.push({ project, file, subject: prepared.subject });
          rendered++;
        }
      });
    await attempt(async () => {
      for (const mailing of mailingsOf(context, report))
        await attempt(async () => {
          const mailed = await mailDue(context, mailing);
          deliveries.push(...mailed.deliveries);
          held.push(...mailed.held);
        });
    });
  }
  const undelivered = deliveries.filter(({ state }) => state !== 'sent');
  if (undelivered.length > 0) problems.push(new DeliveryError(undelivered));
  const sent = deliveries.length - undelivered.length;
  const noun = deliveries.every(({ via }) => via === 'smtp' || via === 'outbox') ? 'email' : 'report';
  const summary = `${counted(rendered, 'page')} rendered, ${counted(sent, noun)} sent, ${undelivered.length} unconfirmed`;
  return withOutage({ detail: { pages, held, deliveries }, summary }, together(problems));
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
    // A site too new for a full week has nothing to report yet, which is not an error.
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

/** Sends a mailing of every period that is due, and the corrections of what was sent before. */
async function mailDue(
  context: StepContext,
  mailing: Mailing,
): Promise<{ deliveries: Delivery[]; held: HeldReport[] }> {
  const deliveries: Delivery[] = [];
  const held: HeldReport[] = [];
  const { report, project } = mailing;
  const ofMailing = (await readDeliveries(context.warehouse)).filter(
    (delivery) => delivery.report === report.name && delivery.project === project,
  );
  for (const { period, due } of await duePeriods(context, mailing, ofMailing)) {
    if (due.kind === 'waits') held.push({ report: mailing.report.name, period: period.name, due });
    if (due.kind !== 'due' || context.signal.aborted) continue;
    const to = { recipients: due.recipients, admission: 'due' as const };
    deliveries.push(...(await sendMailing(context, mailing, period, to)));
  }
  deliveries.push(...(await sendCorrections(context, mailing, ofMailing)));
  return { deliveries, held };
}

/**
 * What is due of a mailing: the last period that has ended, to everyone; earlier ones only to those
 * whose delivery still waits. After weeks offline, nobody is sent old news.
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
  // An email that was begun by a clock that was ahead waits until its period has ended.
  const earlier = [...waiting]
    .flatMap((name) => periodNamed(name, settings.reports) ?? [])
    .filter(({ last }) => last <= current.last);
  return Promise.all(
    [current, ...earlier].map(async (period) => {
      const ofPeriod = deliveries.filter((delivery) => delivery.period === period.name);
      const isOpen = (recipient: string) =>
        period === current || ofPeriod.some((delivery) => delivery.recipient === recipient);
      const { expected, days } = await storedOf(warehouse, projects, period);
      const state = {
        ...{ days: expected, daysLoaded: days },
        ...timesOf(report, period, settings),
        recipients: audience.to.filter(isOpen),
        deliveries: ofPeriod,
      };
      return { period, due: whatIsDue(state, now()) };
    }),
  );
}

/**
 * From when a period may be emailed, and until when it waits for missing days: from the export that
 * could have loaded the last.
 */
function timesOf(report: ReportDefinition, { last }: Period, { schedule, reports }: Settings) {
  const ended = startOfDay(addDays(last, 1));
  const next = (cron: string) => nextScheduled(cron, schedule.timezone, subMilliseconds(ended, 1));
  const until = addHours(next(schedule.export), reports.patienceHours);
  return { from: report.schedule === undefined ? ended : next(report.schedule), until };
}
