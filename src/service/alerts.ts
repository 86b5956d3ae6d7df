import Handlebars from 'handlebars';
import type { Recipient } from '../config/recipients.js';
import { formatShard, type Shard, shardName } from '../config/shard.js';
import { messageOf } from '../errors.js';
import { moment } from '../format/days.js';
import type { Delivery } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import type { Notice } from '../mail/message.js';
import { ask, connectionFailure } from '../network.js';
import type { StepContext } from '../steps/context.js';
import { handOver } from '../steps/mailing.js';
import { type Outage, readOutages } from '../steps/runs.js';
import { type Alert, dropsFor } from './drops.js';

/** The report name of alerts in the ledger of deliveries, which prevents sending one twice. */
export const ALERT = 'alert';

/**
 * Sends an alert about each outage once, and about its end to the same recipients, and one about each drop in views.
 * Never throws.
 */
export async function sendAlerts(context: StepContext): Promise<void> {
  const { settings, shard, warehouse, now, signal, observer } = context;
  const { to } = settings.alerts;
  if (to.length === 0 || signal.aborted) return;
  try {
    const outages = await readOutages(warehouse, now());
    const sent = (await readDeliveries(warehouse)).filter(({ report }) => report === ALERT);
    const drops = await dropsFor(context);
    // Two shards may fail in the same millisecond and need an alert each.
    const all = shard === undefined ? '-' : shardName(shard);
    for (const recipient of to) {
      const known = sent.filter((delivery) => delivery.recipient === recipient);
      for (const alert of [...outages.flatMap((outage) => alertOf(outage, known)), ...drops(known)]) {
        const key = { report: ALERT, project: alert.project ?? all, period: alert.period };
        const recipients: Recipient[] = [recipient];
        const attempted = await handOver(context, noticeOf(alert, shard), key, {
          ...{ recipients, admission: 'due' },
        });
        for (const { state, note } of attempted)
          if (state !== 'sent')
            observer.onAlertFailed?.(`The alert to ${recipient} is ${state}: ${note ?? ''}`);
      }
    }
  } catch (error) {
    observer.onAlertFailed?.(`No alert could be sent: ${messageOf(error)}`);
  }
}

function noticeOf({ fact, text, data }: Alert, shard: Shard | undefined): Notice {
  const subject = `Readership${shard === undefined ? '' : ` (shard ${formatShard(shard)})`}: ${fact}`;
  const html = `<pre style="white-space: pre-wrap">${Handlebars.escapeExpression(text)}</pre>`;
  return {
    ...{ kind: 'alert', subject, brief: text, pageUrl: null, data, figures: null },
    email: () => Promise.resolve({ subject, text, html, pictures: [] }),
  };
}

/** The alert about an outage, or about its end, given what was already `sent`. */
function alertOf({ step, words, since, over_at: overAt }: Outage, sent: readonly Delivery[]): Alert[] {
  const period = `${step} ${since.toISOString()}`;
  const data = { step, since, overAt, words };
  if (overAt === null) {
    const what = `${step} has failed since ${moment(since)}:\n\n${words ?? ''}\n\n`;
    const text = `${what}Readership retries automatically. For details:  readership status, readership doctor`;
    return [{ period, fact: `${step} fails`, text, data }];
  }
  const first = sent.find((delivery) => delivery.period === period);
  // Only recipients of the alert about the outage are notified of its end.
  const mayKnow = first?.state === 'sent' || first?.state === 'unknown';
  if (!mayKnow || first.tried_at >= overAt) return [];
  const text = `${step} failed from ${moment(since)} and has worked again since ${moment(overAt)}.`;
  return [{ period: `${period} over`, fact: `${step} works again`, text, data }];
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
