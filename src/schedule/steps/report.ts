import { MAILED_REPORTS, type ProjectSettings } from '../../config/schema.js';
import type { Delivery } from '../../mail/delivery.js';
import { DeliveryError } from '../../mail/delivery-error.js';
import type { Due } from '../../mail/due.js';
import { ConfigurationError, messageOf } from '../../errors.js';
import { counted } from '../../format/numbers.js';
import { findReport } from '../../reports/catalog.js';
import { NothingLoadedError } from '../../reports/errors.js';
import { writeIndex, writePage } from '../../reports/pages.js';
import { lastEnded } from '../../reports/period.js';
import { byBothClocks, type StepContext, type StepResult } from '../context.js';
import { duePeriods } from '../due-periods.js';
import { mailReport, reportOn } from '../mailing.js';
import { withFaults } from '../with-faults.js';

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
  return withFaults(
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
