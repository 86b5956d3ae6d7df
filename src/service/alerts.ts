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
import { type Fault, readFaults } from '../steps/runs.js';

/** What alerts are called in the ledger of deliveries, which keeps each of them from being sent twice. */
const ALERT = 'alert';

interface Alert {
  /** Names it in the ledger of deliveries. */
  readonly period: string;
  /** Of which step, and what, for the subject. */
  readonly fact: string;
  readonly text: string;
}

/** Mails what failed, once a fault, and that it is over, to whom had been told. Never throws. */
export async function mailAlerts(context: StepContext): Promise<void> {
  const { settings, shard, warehouse, journal, transport, now, signal, observer } = context;
  const { mail, alerts } = settings;
  if (mail === undefined || alerts.to.length === 0 || signal.aborted) return;
  try {
    const faults = await readFaults(warehouse, now());
    const deliveries = await readDeliveries(warehouse);
    const messages = await Promise.all(
      alerts.to.flatMap((recipient) =>
        alertsFor(recipient, faults, deliveries).map(({ period, fact, text }) => {
          const html = `<pre style="white-space: pre-wrap">${Handlebars.escapeExpression(text)}</pre>`;
          const content = { subject: `Readership${whose(shard)}: ${fact}`, text, html, pictures: [] };
          // Two shards may fail in the same millisecond, and their mails are two.
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
    observer.onAlertFailed?.(`No alert could be mailed: ${messageOf(error)}`);
  }
}

/** What a recipient is to know, told already or not: each fault that goes on, and the end of each they were told of. */
function alertsFor(recipient: string, faults: readonly Fault[], told: readonly Delivery[]): Alert[] {
  return faults.flatMap(({ step, words, since, over_at: overAt }): Alert[] => {
    const period = `${step} ${since.toISOString()}`;
    if (overAt === null) {
      const what = `${step} has failed since ${moment(since)}:\n\n${words ?? ''}\n\n`;
      const text = `${what}It is tried again by itself. See: readership status, readership doctor`;
      return [{ period, fact: `${step} fails`, text }];
    }
    const first = told.find(
      (delivery) =>
        delivery.report === ALERT && delivery.period === period && delivery.recipient === recipient,
    );
    // Who was not told that it failed need not be told that it works again.
    const mayHaveBeenTold = first?.state === 'sent' || first?.state === 'unknown';
    if (!mayHaveBeenTold || first.tried_at >= overAt) return [];
    const text = `${step} failed from ${moment(since)} on, and works again since ${moment(overAt)}.`;
    return [{ period: `${period} over`, fact: `${step} works again`, text }];
  });
}

const whose = (shard: Shard | undefined): string =>
  shard === undefined ? '' : ` (shard ${formatShard(shard)})`;

const TIMEOUT_MS = 5_000;

/** Asks for an address, so that who watches it knows; what went wrong, if anything. Its path is as good as a secret. */
export async function ping(url: string, signal: AbortSignal): Promise<string | undefined> {
  const { origin } = new URL(url);
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { statusCode, body } = await request(url, { signal: within });
    await body.dump();
    return statusCode < 400 ? undefined : `The ping to ${origin} was answered with ${statusCode}.`;
  } catch (error) {
    return `The ping to ${origin} failed: ${messageOf(error)}`;
  }
}
