import { subDays } from 'date-fns';
import { z } from 'zod';
import type { Recipient } from '../config/recipients.js';
import { daysIn } from '../day.js';
import { type Delivery, type Figures, mayBeTried } from '../mail/delivery.js';
import { writePage } from '../reports/pages.js';
import { type Period, periodNamed } from '../reports/period.js';
import { readSql } from '../warehouse/query.js';
import type { StepContext } from './context.js';
import { correctionOf } from './correction-notice.js';
import { handOver, type Mailing, reportOn, type Stored, storedOf } from './mailing.js';

/** The period of a correction in the ledger of deliveries. */
const correctionName = (period: string): string => `${period} correction`;

/** Older reports are not corrected. */
const CORRECTED_DAYS = 56;

/** Smaller changes are never worth an email. */
const LEAST_SHARE = 0.02;
/** A change is unusual if it is more than this multiple of the usual one. */
const UNUSUAL = 3;

/**
 * Whether what was sent needs a correction: it had fewer days, or its views changed by more than
 * they usually do. Not before every day of the period is final, so that one correction is enough.
 */
export function isOutdated(said: Figures, stored: Stored, usualShare: number): boolean {
  if (stored.final < stored.expected) return false;
  const daysMore = stored.days - said.days;
  // A digest that was sent before a project was added, or removed, was right.
  if (daysMore < 0 || (daysMore > 0 && daysMore % stored.length === 0)) return false;
  const change = Math.abs(stored.human - said.human) + Math.abs(stored.ai - said.ai);
  const share = change / Math.max(1, said.human + said.ai);
  return daysMore > 0 || share > Math.max(LEAST_SHARE, UNUSUAL * usualShare);
}

/** Sends the corrections of a mailing that are due, each once; returns the deliveries attempted. */
export async function sendCorrections(
  context: StepContext,
  mailing: Mailing,
  deliveries: readonly Delivery[],
): Promise<Delivery[]> {
  const attempted: Delivery[] = [];
  for (const { period, said, sentAt, recipients } of sentBefore(context, mailing, deliveries)) {
    if (context.signal.aborted) break;
    const stored = await storedOf(context.warehouse, mailing.projects, period);
    if (!isOutdated(said, stored, 0)) continue;
    const usual = await usualShareOf(context, mailing, period, sentAt);
    if (!isOutdated(said, stored, usual)) continue;
    attempted.push(...(await sendCorrection(context, mailing, { period, said, sentAt, stored }, recipients)));
  }
  return attempted;
}

interface Sent {
  readonly period: Period;
  readonly said: Figures;
  readonly sentAt: Date;
  /** Recipients of these numbers who may get a correction now. */
  readonly recipients: readonly Recipient[];
}

/** What was sent of a mailing in the last weeks, by period and numbers. */
function sentBefore(
  { settings, now }: StepContext,
  { report, audience }: Mailing,
  deliveries: readonly Delivery[],
): Sent[] {
  if (!report.corrections) return [];
  const found = new Map<string, Sent>();
  for (const delivery of deliveries) {
    const { state, days_covered: days, human, ai, tried_at: sentAt } = delivery;
    const period = periodNamed(delivery.period, settings.reports);
    const recipient = audience.to.find((one) => one === delivery.recipient);
    const isKnown = state === 'sent' && days !== null && human !== null && ai !== null;
    if (!isKnown || period === undefined || recipient === undefined) continue;
    const correction = deliveries.find(
      (other) => other.recipient === recipient && other.period === correctionName(period.name),
    );
    if (sentAt < subDays(now(), CORRECTED_DAYS) || !mayBeTried(correction, 'due', now())) continue;
    const name = `${period.name} ${days} ${human} ${ai}`;
    const { recipients = [] } = found.get(name) ?? {};
    found.set(name, { period, said: { days, human, ai }, sentAt, recipients: [...recipients, recipient] });
  }
  return [...found.values()];
}

const USUAL_RESTATEMENT = readSql(import.meta.url, 'statements/usual-restatement.sql');

/** The largest of the projects' usual shares of views that later loads change. */
async function usualShareOf(
  { warehouse }: StepContext,
  { projects }: Mailing,
  { first, last }: Period,
  sentAt: Date,
): Promise<number> {
  const row = z.object({ share: z.number() });
  const days = daysIn({ first, last }).length;
  const rows = await Promise.all(
    projects.map(({ id }) =>
      warehouse.query(USUAL_RESTATEMENT, row, { project: id, first, days, sent_at: sentAt }),
    ),
  );
  return Math.max(0, ...rows.flat().map(({ share }) => share));
}

async function sendCorrection(
  context: StepContext,
  mailing: Mailing,
  { period, stored, ...sent }: Omit<Sent, 'recipients'> & { readonly stored: Stored },
  recipients: readonly Recipient[],
): Promise<Delivery[]> {
  const { warehouse, reportsDir, workspaceDir, settings } = context;
  const { report, project, projects } = mailing;
  // The page that a correction links to must have the corrected numbers.
  for (const one of projects)
    if ((await storedOf(warehouse, [one], period)).days > 0)
      await writePage(reportsDir, one.id, await reportOn(context, warehouse, one, { report, period }));
  const [only, ...others] = projects;
  const notice = await correctionOf({
    ...{ report, period, ...sent, now: stored, workspaceDir },
    project: only !== undefined && others.length === 0 ? only : undefined,
    baseUrl: settings.reports.baseUrl,
    letterhead: settings.mail,
  });
  const key = { report: report.name, project, period: correctionName(period.name) };
  return handOver(context, notice, key, { recipients, admission: 'due' });
}
