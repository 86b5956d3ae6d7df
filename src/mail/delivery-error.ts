import { ReadershipError } from '../errors.js';
import type { Delivery } from './delivery.js';

/** Mails that did not arrive, or may not have. Try later when every one of them is tried again by itself. */
export class DeliveryError extends ReadershipError {
  readonly exitCode: 1 | 75;

  constructor(deliveries: readonly Delivery[]) {
    const one = ({ report, period, recipient, state, note }: Delivery) =>
      `${report} ${period} to ${recipient}: ${state}, ${note ?? 'without a word'}`;
    super(
      `Not delivered, or not known to be:\n${deliveries.map((delivery) => `  ${one(delivery)}`).join('\n')}\nSee: readership status`,
    );
    this.exitCode = deliveries.every(({ state }) => state === 'waiting') ? 75 : 1;
  }
}
