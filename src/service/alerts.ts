import Handlebars from 'handlebars';
import { request } from 'undici';
import { formatShard, type Shard, shardName } from '../config/shard.js';
import { messageOf } from '../errors.js';
import { moment } from '../format/days.js';
import { deliver } from '../mail/deliver.js';
import type { Delivery } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { compose } from '../mail/message.js';
import type { StepContext } from '../steps/context.js';
import { type Outage, readOutages } from '../steps/runs.js';

/** What alerts are called in the ledger of deliveries, which keeps each of them from being sent twice. */
export const ALERT = 'alert';

interface Alert {
  /** Names it in the ledger of deliveries. */
  readonly period: string;
  /** Of which step, and what, for the subject. */
  readonly fact: string;
  readonly text: string;
}

/** Emails each outage once, and its end to whoever got the first email. Never throws. */
export async function mailAlerts(context: StepContext): Promise<void> {
  const { settings, shard, warehouse, journal, transport, now, signal, observer } = context;
  const { mail, alerts } = settings;
  if (mail === undefined || alerts.to.length === 0 || signal.aborted) return;
  try {
    const outages = await readOutages(warehouse, now());
    const deliveries = await readDeliveries(warehouse);
    const messages = await Promise.all(
      alerts.to.flatMap((recipient) =>
        alertsFor(recipient, outages, deliveries).map(({ period, fact, text }) => {
          const html = `<pre style="white-space: pre-wrap">${Handlebars.escapeExpression(text)}</pre>`;
          const content = { subject: `Readership${whose(shard)}: ${fact}`, text, html, pictures: [] };
          // Two shards may fail in the same millisecond and need an email each.
          const key = { report: ALERT, project: shard === undefined ? '-' : shardName(shard) };
          return compose({ ...key, period, recipient }, content, mail, now());
        }),
      ),
    );
    const task = { warehouse, journal, transport: transport(), admission: 'due', now, signal } as const;
    const attempted = messages.length === 0 ? [] : await deliver(task, messages);
    for (const { state, recipient, note } of attempted)
      if (state !== 'sent') observer.onAlertFailed?.(`The alert to ${recipient} is ${state}: ${note ?? ''}`);
  } catch (error) {
    observer.onAlertFailed?.(`No alert could be emailed: ${messageOf(error)}`);
  }
}

/** The alerts for a recipient, sent already or not: each outage that goes on, and the end of each they know about. */
function alertsFor(recipient: string, outages: readonly Outage[], sent: readonly Delivery[]): Alert[] {
  return outages.flatMap(({ step, words, since, over_at: overAt }): Alert[] => {
    const period = `${step} ${since.toISOString()}`;
    if (overAt === null) {
      const what = `${step} has failed since ${moment(since)}:\n\n${words ?? ''}\n\n`;
      const text = `${what}Readership retries by itself. For details:  readership status, readership doctor`;
      return [{ period, fact: `${step} fails`, text }];
    }
    const first = sent.find(
      (delivery) =>
        delivery.report === ALERT && delivery.period === period && delivery.recipient === recipient,
    );
    // Whoever got no email about the outage needs none about its end.
    const mayKnow = first?.state === 'sent' || first?.state === 'unknown';
    if (!mayKnow || first.tried_at >= overAt) return [];
    const text = `${step} failed from ${moment(since)} and has worked again since ${moment(overAt)}.`;
    return [{ period: `${period} over`, fact: `${step} works again`, text }];
  });
}

const whose = (shard: Shard | undefined): string =>
  shard === undefined ? '' : ` (shard ${formatShard(shard)})`;

const TIMEOUT_MS = 5_000;

/** Pings a monitoring service; returns what went wrong, if anything. The path of its address is a secret. */
export async function ping(url: string, signal: AbortSignal): Promise<string | undefined> {
  const { origin } = new URL(url);
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { statusCode, body } = await request(url, { signal: within });
    await body.dump();
    return statusCode < 400 ? undefined : `The ping to ${origin} got status ${statusCode}.`;
  } catch (error) {
    return `The ping to ${origin} failed: ${messageOf(error)}`;
  }
}
