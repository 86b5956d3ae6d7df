import { subDays } from 'date-fns';
import { z } from 'zod';
import type { Recipient } from '../config/recipients.js';
import { dayOf, daysIn } from '../day.js';
import { longDay, plainDayRange } from '../format/days.js';
import { AUDIENCES, viewsBy } from '../format/audience.js';
import { counted, thousands } from '../format/numbers.js';
import type { Notice } from '../mail/compose.js';
import { correctionOf, type Delivery, type Figures, mayBeTried } from '../mail/delivery.js';
import { differenceOf, plainWords, type Said, storedWords } from '../reports/correction.js';
import { eachLoaded } from '../reports/coverage.js';
import { writePage } from '../reports/pages.js';
import { type Period, periodNamed } from '../reports/period.js';
import { formsOf, prepareReport } from '../reports/render.js';
import { readSql } from '../warehouse/query.js';
import { type Mailing, saidIn, sendNotice, type Stored, storedOf } from './mailing.js';
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
export function isOutdated(said: Figures, stored: Omit<Stored, 'of' | 'pages'>, usualShare: number): boolean {
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
  for (const sent of sentBefore(context, mailing, deliveries)) {
    if (context.signal.aborted) break;
    const { period, said, sentAt, recipients } = sent;
    const stored = await storedOf(context.warehouse, mailing, period, sentAt);
    // Without the usual change, which takes longer to read, more may be outdated.
    if (!isOutdated(said, stored, 0)) continue;
    if (!isOutdated(said, stored, await usualShareOf(context, mailing, sent))) continue;
    const notice = await correctionNotice(context, mailing, sent, stored);
    const { report, project } = mailing;
    const key = { report: report.name, project, period: correctionOf(period.name) };
    attempted.push(...(await sendNotice(context, notice, key, recipients, 'due')));
  }
  return attempted;
}

/** A report that was sent, with these numbers. */
interface Sent {
  readonly period: Period;
  readonly said: Figures;
  readonly sentAt: Date;
  /** Recipients of these numbers who may get a correction now. */
  readonly recipients: Recipient[];
}

/** What was sent of a mailing in recent weeks, by period and numbers. */
function sentBefore(
  { settings, now }: StepContext,
  { report, audience }: Mailing,
  deliveries: readonly Delivery[],
): Iterable<Sent> {
  if (!report.corrections) return [];
  const found = new Map<string, Sent>();
  for (const delivery of deliveries) {
    const { state, days_covered: days, human, ai, said: words, tried_at: sentAt } = delivery;
    const period = periodNamed(delivery.period, settings.reports);
    const recipient = audience.to.find((one) => one === delivery.recipient);
    // Before 0.3.0, the numbers of a part of the site were not stored, but those of all of it.
    const isOfPages = storedWords(words)?.[0]?.pages === audience.where;
    const isKnown = state === 'sent' && isOfPages && days !== null && human !== null && ai !== null;
    if (!isKnown || period === undefined || recipient === undefined) continue;
    const correction = deliveries.find(
      (other) => other.recipient === recipient && other.period === correctionOf(period.name),
    );
    if (sentAt < subDays(now(), CORRECTED_DAYS) || !mayBeTried(correction, 'due', now())) continue;
    const said = { days, human, ai, said: words };
    const name = JSON.stringify([period.name, said]);
    const sent = found.get(name) ?? { period, said, sentAt, recipients: [] };
    sent.recipients.push(recipient);
    found.set(name, sent);
  }
  return found.values();
}

const USUAL_RESTATEMENT = readSql(import.meta.url, 'statements/usual-restatement.sql');

/** The largest of the projects' usual shares of views that later loads change. */
async function usualShareOf(
  { warehouse }: StepContext,
  { projects }: Mailing,
  { period, sentAt }: Sent,
): Promise<number> {
  const row = z.object({ share: z.number() });
  const given = { first: period.first, days: daysIn(period).length, sent_at: sentAt };
  const rows = await Promise.all(
    projects.map(({ id }) => warehouse.query(USUAL_RESTATEMENT, row, { project: id, ...given })),
  );
  return Math.max(0, ...rows.flat().map(({ share }) => share));
}

/**
 * The notice about a report that was sent incomplete, or whose numbers have changed since. Renders
 * the pages again, because it links to them.
 */
async function correctionNotice(
  context: StepContext,
  mailing: Mailing,
  { period, said, sentAt }: Sent,
  now: Stored,
): Promise<Notice> {
  const { warehouse, reportsDir } = context;
  const { report, projects, audience } = mailing;
  const request = { report, period };
  const { results: editions } = await eachLoaded(projects, async (project) => {
    const prepared = await prepareReport(context, warehouse, project, request);
    await writePage(reportsDir, project.id, prepared);
    return audience.where === undefined
      ? prepared
      : prepareReport(context, warehouse, project, { ...request, where: audience.where });
  });
  const wordsNow = saidIn(editions, now);
  const parts = correctedProjects(mailing, said, now, wordsNow)
    .map(({ project, ...part }) => {
      const of = editions.find(({ model }) => model.project.id === project);
      return { ...part, name: of?.model.project.name ?? report.title, pageUrl: of?.pageUrl ?? null };
    })
    .sort((one, two) => two.stake - one.stake);
  const [first] = parts;
  const isOne = projects.length === 1;
  const name = isOne ? (first?.name ?? report.title) : report.title;
  const sent = longDay(dayOf(sentAt));
  const why =
    said.days < now.days
      ? `The report sent on ${sent} covered ${said.days} of ${counted(now.expected, 'day')}. All of them are loaded now.`
      : `The platform has changed its numbers since the report was sent on ${sent}.`;
  const news = newsOf(said, now);
  const subject = `Correction: ${name}, ${plainDayRange(period)}: ${news}`;
  const url = isOne ? (first?.pageUrl ?? null) : null;
  const { brief, mail } = await formsOf(context, 'correction', {
    subject,
    preheader: why,
    why,
    parts,
    isOne,
    period,
    news,
    name,
    pageUrl: url,
    report: { name: report.name, title: report.title },
  });
  const figures = (of: Figures) => ({ days: of.days, human: of.human, ai: of.ai });
  return {
    kind: 'correction',
    subject,
    pageUrl: url,
    brief: brief(),
    email: mail,
    figures: { ...now, said: JSON.stringify(wordsNow) },
    data: { why, said: figures(said), now: figures(now), parts },
  };
}

/** What differs, by project: all that is known of an email of 0.2.0 is its number of views. */
function correctedProjects({ project }: Mailing, said: Figures, now: Stored, wordsNow: readonly Said[]) {
  const of = { project, missing: null };
  const before = storedWords(said.said) ?? [plainWords({ ...of, human: said.human, ai: said.ai })];
  const known = said.said == null ? [plainWords({ ...of, human: now.human, ai: now.ai })] : wordsNow;
  return before
    .flatMap((words) => {
      const other = known.find((one) => one.project === words.project);
      if (other === undefined) return [];
      const difference = differenceOf(words, other, now.of.get(words.project) ?? []);
      return [{ ...difference, project: words.project }];
    })
    .filter(({ causes }) => said.said == null || causes.length > 0);
}

/** The number of views that changed most. */
function newsOf(said: Figures, now: Figures): string {
  const [audience] = AUDIENCES.filter((one) => said[one] !== now[one]).sort(
    (one, two) => Math.abs(now[two] - said[two]) - Math.abs(now[one] - said[one]),
  );
  return audience === undefined
    ? 'all days are loaded, and the numbers are unchanged'
    : `${viewsBy(audience, now[audience])}, not ${thousands(said[audience])}`;
}
