import { subDays } from 'date-fns';
import { z } from 'zod';
import type { Recipient } from '../config/recipients.js';
import { dayOf, daysIn } from '../day.js';
import { longDay, plainDayRange } from '../format/days.js';
import { changeOf, counted, thousands } from '../format/numbers.js';
import type { Notice } from '../mail/compose.js';
import { correctionOf, type Delivery, type Figures, mayBeTried } from '../mail/delivery.js';
import { eachLoaded } from '../reports/coverage.js';
import { pageUrl, writePage } from '../reports/pages.js';
import { type Period, periodNamed } from '../reports/period.js';
import { filledMail, prepareReport } from '../reports/render.js';
import { readSql } from '../warehouse/query.js';
import { handOver, type Mailing, type Stored, storedOf } from './mailing.js';
import type { StepContext } from './step.js';

/** Older reports are not corrected. */
const CORRECTED_DAYS = 56;

/** Smaller changes are never worth an email. */
const LEAST_SHARE = 0.02;
/** A change is unusual if it is more than this multiple of the usual one. */
const UNUSUAL = 3;

/**
 * Whether a report that was sent needs a correction: it covered fewer days, or its views have
 * changed by more than usual. Never before all days of the period are final, so that one correction
 * is enough.
 */
export function isOutdated(said: Figures, stored: Stored, usualShare: number): boolean {
  if (stored.final < stored.expected) return false;
  const daysMore = stored.days - said.days;
  // A digest that was sent before a project was added or removed was correct.
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
    await writePages(context, mailing, period);
    const notice = await noticeOf(context, mailing, { period, said, sentAt, now: stored });
    const { report, project } = mailing;
    const key = { report: report.name, project, period: correctionOf(period.name) };
    attempted.push(...(await handOver(context, notice, key, { recipients, admission: 'due' })));
  }
  return attempted;
}

/** A report that was sent, with these numbers. */
interface Sent {
  readonly period: Period;
  readonly said: Figures;
  readonly sentAt: Date;
  /** Recipients of these numbers who may get a correction now. */
  readonly recipients: readonly Recipient[];
}

/** What was sent of a mailing in recent weeks, by period and numbers. */
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
      (other) => other.recipient === recipient && other.period === correctionOf(period.name),
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

/** Renders the pages again, because a correction links to the corrected numbers. */
async function writePages(
  context: StepContext,
  { report, projects }: Mailing,
  period: Period,
): Promise<void> {
  const { warehouse, reportsDir } = context;
  await eachLoaded(projects, async (project) => {
    const prepared = await prepareReport(context, warehouse, project, { report, period });
    await writePage(reportsDir, project.id, prepared);
  });
}

/** The notice about a report that was sent incomplete, or whose numbers have changed since. */
async function noticeOf(
  context: StepContext,
  { report, projects }: Mailing,
  { period, said, sentAt, now }: Omit<Sent, 'recipients'> & { readonly now: Stored },
): Promise<Notice> {
  const [project] = projects.length === 1 ? projects : [];
  const name = project?.name ?? report.title;
  const rows = (['human', 'ai'] as const).map((audience) => ({
    name: audience === 'ai' ? 'AI views' : 'Human views',
    said: said[audience],
    now: now[audience],
    change: changeOf(now[audience], said[audience]),
  }));
  const sent = longDay(dayOf(sentAt));
  const why =
    said.days < now.days
      ? `The report sent on ${sent} covered ${said.days} of ${counted(now.expected, 'day')}. All of them are loaded now.`
      : `The platform has changed its numbers since the report was sent on ${sent}.`;
  const [row] = rows.filter((one) => one.said !== one.now);
  const news =
    row === undefined
      ? 'all days are loaded, and the numbers are unchanged'
      : `${counted(row.now, row.name.replace(/s$/, '').replace(/^H/, 'h'))}, not ${thousands(row.said)}`;
  const subject = `Correction: ${name}, ${plainDayRange(period)}: ${news}`;
  const { baseUrl } = context.settings.reports;
  const url = project === undefined ? null : pageUrl(baseUrl, project.id, { name: report.name, period });
  const { brief, mail } = await filledMail(context, 'correction', {
    subject,
    preheader: why,
    why,
    rows,
    period,
    news,
    name,
    pageUrl: url,
    report: { name: report.name, title: report.title },
  });
  return {
    kind: 'correction',
    subject,
    pageUrl: url,
    figures: now,
    brief: brief(),
    email: mail,
    data: { why, said, now: { days: now.days, human: now.human, ai: now.ai } },
  };
}
