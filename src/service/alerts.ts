import Handlebars from 'handlebars';
import { z } from 'zod';
import { formatShard, type Shard } from '../config/shard.js';
import { addDays, type Day, daysBetween, lastEndedDay, parseDay } from '../day.js';
import { messageOf } from '../errors.js';
import { viewsBy } from '../format/audience.js';
import { dayRange, longDay, moment } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import type { Notice } from '../mail/compose.js';
import { ALERT, allProjects, type Delivery } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { ask, connectionFailure } from '../network.js';
import { handOver } from '../steps/mailing.js';
import { type StepContext } from '../steps/step.js';
import { type Outage, readOutages } from '../steps/runs.js';
import { dayColumn, readSql } from '../warehouse/query.js';

/** An alert, whether or not it was sent. */
interface Alert {
  /** Identifies it in the ledger of deliveries, together with its project if it is about one. */
  readonly period: string;
  readonly project?: string;
  /** For the subject. */
  readonly fact: string;
  readonly text: string;
  readonly data: object;
}

/**
 * Sends an alert about each outage once, and about its end to the same recipients, and one about
 * each drop in views. Never throws, but returns why none could be sent.
 */
export async function sendAlerts(context: StepContext): Promise<string | undefined> {
  const { settings, shard, warehouse, elsewhere, now, signal, observer } = context;
  const { to } = settings.alerts;
  if (to.length === 0 || elsewhere !== undefined || signal.aborted) return undefined;
  try {
    const outages = await readOutages(warehouse, now());
    const sent = await readDeliveries(warehouse, { report: ALERT });
    const drops = await dropsBegun(context);
    // Two shards may fail in the same millisecond and need an alert each.
    const all = allProjects(shard);
    for (const recipient of to) {
      const known = sent.filter((delivery) => delivery.recipient === recipient);
      const alerts = [
        ...outages.flatMap((outage) => outageAlert(outage, known)),
        ...drops.map(({ drop, project }) => dropAlert(drop, project, known)),
      ];
      for (const alert of alerts) {
        const key = { report: ALERT, project: alert.project ?? all, period: alert.period };
        const to = { recipients: [recipient], admission: 'due' as const };
        const attempted = await handOver(context, noticeOf(alert, shard), key, to);
        for (const { state, note } of attempted)
          if (state !== 'sent')
            observer.onAlertFailed?.(`The alert to ${recipient} is ${state}: ${note ?? ''}`);
      }
    }
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function noticeOf({ fact, text, data }: Alert, shard: Shard | undefined): Notice {
  const subject = `Readership${shard === undefined ? '' : ` (shard ${formatShard(shard)})`}: ${fact}`;
  const html = `<pre style="white-space: pre-wrap">${Handlebars.escapeExpression(text)}</pre>`;
  return {
    kind: 'alert',
    subject,
    brief: text,
    pageUrl: null,
    data,
    figures: null,
    email: () => Promise.resolve({ subject, text, html, pictures: [] }),
  };
}

/** The alert about an outage, or about its end, given what was already `sent`. */
function outageAlert({ step, words, since, over_at: overAt }: Outage, sent: readonly Delivery[]): Alert[] {
  const period = `${step} ${since.toISOString()}`;
  const data = { step, since, overAt, words };
  if (overAt === null) {
    const what = `${step} has failed since ${moment(since)}:\n\n${words ?? ''}\n\n`;
    const text = `${what}Readership retries automatically. For details:  readership status, readership doctor`;
    return [{ period, fact: `${step} fails`, text, data }];
  }
  // Only recipients of the alert about the outage are notified of its end.
  const first = sent.find((delivery) => delivery.period === period);
  if (first?.state !== 'sent' && first?.state !== 'unknown') return [];
  const text = `${step} failed from ${moment(since)} and has worked again since ${moment(overAt)}.`;
  return [{ period: `${period} over`, fact: `${step} works again`, text, data }];
}

const DROPPED_DAYS = readSql(import.meta.url, 'statements/dropped-days.sql');

const dropRow = z.object({
  project: z.string(),
  day: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  expected: z.number(),
  low: z.int(),
});
type Drop = z.infer<typeof dropRow>;

/** Days that dropped within a week of each other count as one drop. An older one is not reported. */
const ONE_DROP_DAYS = 7;

/** The first days of the drops in the last week, with their projects. */
async function dropsBegun({ warehouse, projects, now }: StepContext) {
  const last = lastEndedDay(now());
  const drops = await warehouse.query(DROPPED_DAYS, dropRow, { last_day: last });
  const precedes = (one: Drop, other: Drop): boolean => {
    const days = daysBetween(one.day, other.day);
    const isSame = one.project === other.project && one.audience === other.audience;
    return isSame && days > 0 && days <= ONE_DROP_DAYS;
  };
  return drops
    .filter(
      (drop) => daysBetween(drop.day, last) < ONE_DROP_DAYS && !drops.some((one) => precedes(one, drop)),
    )
    .flatMap((drop) => {
      const project = projects.find(({ id }) => id === drop.project);
      return project === undefined ? [] : [{ drop, project }];
    });
}

/** A drop near one that was already reported gets the same name, since it is not a new drop. */
function dropAlert(drop: Drop, { id, name }: { id: string; name: string }, sent: readonly Delivery[]): Alert {
  const { day, audience, views, expected, low } = drop;
  const prefix = `drop ${audience} `;
  const known = sent.find(
    ({ project, period }) =>
      project === id && period.startsWith(prefix) && isNear(period.slice(prefix.length), day),
  );
  const range = dayRange({ first: day, last: day });
  return {
    project: id,
    period: known?.period ?? `${prefix}${day}`,
    fact: `${name}, ${longDay(day)}: ${viewsBy(audience, views)}, about ${thousands(expected)} expected`,
    text:
      `${name} had ${viewsBy(audience, views)} on ${range}. About ${thousands(expected)} were expected, and ` +
      `normal variation explains no fewer than ${thousands(low)}. Tracking may have stopped, the site may have been ` +
      `down, or it was a holiday.\n\nThe days:  readership sql "FROM site_days WHERE project = '${id.replaceAll("'", "''")}' ` +
      `AND day >= '${addDays(day, -14)}' ORDER BY day"`,
    data: drop,
  };
}

function isNear(text: string, day: Day): boolean {
  const other = parseDay(text);
  return other !== undefined && Math.abs(daysBetween(other, day)) <= ONE_DROP_DAYS;
}

const TIMEOUT_MS = 5_000;

/** Pings a monitoring service; returns what went wrong, if anything. The path of its address is a secret. */
export async function ping(url: string, signal: AbortSignal): Promise<string | undefined> {
  const { origin } = new URL(url);
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { statusCode, body } = await ask(url, { signal: within });
    await body.dump();
    return statusCode < 400 ? undefined : `The ping to ${origin} got status ${statusCode}.`;
  } catch (error) {
    return `The ping to ${origin} failed: ${connectionFailure(error)}`;
  }
}
