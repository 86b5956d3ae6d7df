import pMap from 'p-map';
import { ReadershipError } from '../errors.js';
import { withGrace } from '../sleep.js';
import type { Delivery, DeliveryAdmission } from './delivery.js';
import { claim, type Ledgers, record } from './ledger.js';
import type { Message } from './compose.js';
import { post } from './channel.js';
import type { MailTransport } from './transport.js';

/** Concurrency: one slow server does not delay other recipients, and no server is flooded. */
const MAX_AT_ONCE = 4;

interface DeliveryTask extends Ledgers {
  /** The transport for emails; posts to channels need none. */
  readonly transport: MailTransport;
  readonly admission: DeliveryAdmission;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

/**
 * Sends the messages that may be sent, each recorded before and after. A failure of one does not
 * affect the others. After an interruption, it finishes those in progress and starts no others.
 * Returns the attempted deliveries.
 */
export async function deliver(task: DeliveryTask, messages: readonly Message[]): Promise<Delivery[]> {
  const failures: unknown[] = [];
  const attempt = (message: Message) =>
    deliverOne(task, message).catch((error: unknown) => {
      failures.push(error);
    });
  const attempted = await pMap(messages, attempt, { concurrency: MAX_AT_ONCE });
  // Only storage can fail here. The error is thrown once every conversation in progress has ended.
  if (failures.length > 0) throw failures[0];
  return attempted.filter((delivery) => delivery !== undefined);
}

async function deliverOne(
  { transport, admission, now, signal, ...ledgers }: DeliveryTask,
  message: Message,
): Promise<Delivery | undefined> {
  if (signal.aborted) return undefined;
  const isPost = 'channel' in message;
  const via = isPost ? message.channel.kind : transport.via;
  const claimed = await claim(ledgers, message, { via, admission, now: now() });
  if (claimed === undefined) return undefined;
  const { departure } = claimed;
  const outcome = await (isPost
    ? post(message, departure, now(), withGrace(signal))
    : transport.send(message, departure, withGrace(signal)));
  return record(ledgers.warehouse, claimed, outcome, now());
}

/** Emails and posts that did not arrive, or may not have. Exit code 75 if all of them are retried automatically. */
export class DeliveryError extends ReadershipError {
  readonly exitCode: 1 | 75;

  constructor(deliveries: readonly Delivery[]) {
    const one = ({ report, period, recipient, state, note }: Delivery) =>
      `${report} ${period} to ${recipient}: ${state}, ${note ?? 'no reason given'}`;
    super(
      `Not delivered, or outcome unknown:\n${deliveries.map((delivery) => `  ${one(delivery)}`).join('\n')}\nSee: readership status`,
    );
    this.exitCode = deliveries.every(({ state }) => state === 'waiting') ? 75 : 1;
  }
}
