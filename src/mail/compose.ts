import { isAddress, type Recipient } from '../config/recipients.js';
import { ConfigurationError } from '../errors.js';
import { type Channel, composePost, type Post } from './channel.js';
import type { DeliveryKey } from './delivery.js';
import { compose, type Email, type Letterhead, type Notice } from './message.js';

/** A notice for one recipient, ready to be sent. */
export type Message = Email | Post;

/** The sender of emails, and the configured channels by name. */
export interface Senders {
  readonly mail: Letterhead | undefined;
  readonly channels: ReadonlyMap<string, Channel>;
}

/** The messages of a notice, one per recipient; an email is composed only if it has recipients. */
export async function composeAll(
  notice: Notice,
  key: Omit<DeliveryKey, 'recipient'>,
  recipients: readonly Recipient[],
  { mail, channels }: Senders,
  now: Date,
): Promise<Message[]> {
  const content = recipients.some(isAddress) ? await notice.email() : undefined;
  return Promise.all(
    recipients.map(async (recipient): Promise<Message> => {
      const to = { ...key, recipient };
      const channel = channels.get(recipient);
      if (channel !== undefined) return composePost(to, notice, channel, now);
      if (mail === undefined || content === undefined)
        throw new ConfigurationError('Emails need a sender: set mail.from in the configuration.');
      return compose(to, { ...content, figures: notice.figures }, mail, now);
    }),
  );
}
