import { MAILED_REPORTS, type ProjectSettings } from '../../config/schema.js';
import type { Delivery } from '../../mail/delivery.js';
import { DeliveryError } from '../../mail/delivery-error.js';
import type { Due } from '../../mail/due.js';
import { settleInterruptedDeliveries } from '../../mail/ledger.js';
import { NothingLoadedError } from '../../reports/nothing-loaded-error.js';
import { writeIndex } from '../../reports/index-page.js';
import { writePage } from '../../reports/write.js';
import { byBothClocks, type StepContext, type StepResult } from '../context.js';
import { duePeriods } from '../due-periods.js';
import { mailReport, renderFor } from '../mailing.js';
import { withFaults } from '../with-faults.js';

/** A page that was rendered, and where it lies. */
interface RenderedPage {
  readonly project: ProjectSettings;
  readonly subject: string;
  readonly file: string;
}

/** A report that is not mailed yet, because days of its period are missing. */
export interface HeldReport {
  readonly project: ProjectSettings;
  readonly report: string;
  readonly period: string;
  readonly due: Extract<Due, { kind: 'waits' }>;
}

export interface Reported {
  readonly pages: readonly RenderedPage[];
  readonly held: readonly HeldReport[];
  /** Attempted now, or found half sent by a process that was killed. */
  readonly deliveries: readonly Delivery[];
}

/** Renders the weekly page of every project for the last week that has ended, and mails every report that is due. */
export async function reportStep(given: StepContext): Promise<StepResult<Reported>> {
  const context = await byBothClocks(given);
  const { settings, projects, warehouse, workspaceDir, reportsDir, now, signal } = context;
  const pages: RenderedPage[] = [];
  const held: HeldReport[] = [];
  const deliveries = await settleInterruptedDeliveries(warehouse, now());
  const faults: unknown[] = [];
  const attempt = (work: () => Promise<unknown>) => keepingFaults(faults, signal, work);
  for (const project of projects) {
    await attempt(async () => {
      const weekly = await renderFor(context, warehouse, project, { name: 'weekly', withMail: false });
      const file = await writePage(reportsDir, project.id, weekly);
      pages.push({ project, file, subject: weekly.subject });
    });
    for (const report of MAILED_REPORTS)
      await attempt(async () => {
        const mailed = await mailDue(context, project, report);
        deliveries.push(...mailed.deliveries);
        held.push(...mailed.held);
      });
  }
  await attempt(() => writeIndex(reportsDir, { workspaceDir, calendar: settings.reports }));
  const undelivered = deliveries.filter(({ state }) => state !== 'sent');
  if (undelivered.length > 0) faults.push(new DeliveryError(undelivered));
  const sent = deliveries.length - undelivered.length;
  const summary = `${pages.length} pages rendered, ${sent} mails sent, ${undelivered.length} not known to be`;
  return withFaults({ detail: { pages, held, deliveries }, summary, changed: deliveries.length > 0 }, faults);
}

/** What fails here holds up neither the other reports nor the other projects. After an interruption nothing begins. */
async function keepingFaults(
  faults: unknown[],
  signal: AbortSignal,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    signal.throwIfAborted();
    await work();
  } catch (error) {
    // A site too young for a whole week: there is nothing to tell yet, and nothing wrong.
    if (!(error instanceof NothingLoadedError)) faults.push(error);
  }
}

/** Mails a report of every period that is due. */
async function mailDue(
  context: StepContext,
  project: ProjectSettings,
  report: string,
): Promise<{ deliveries: Delivery[]; held: HeldReport[] }> {
  const deliveries: Delivery[] = [];
  const held: HeldReport[] = [];
  for (const { period, due } of await duePeriods(context, project, report)) {
    if (due.kind === 'waits') held.push({ project, report, period, due });
    if (due.kind !== 'due' || context.signal.aborted) continue;
    const rendered = await renderFor(context, context.warehouse, project, { name: report, period });
    const to = { recipients: due.recipients, admission: 'due' as const };
    deliveries.push(...(await mailReport(context, project, rendered, to)));
  }
  return { deliveries, held };
}
