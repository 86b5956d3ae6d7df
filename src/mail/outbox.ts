import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../errors.js';
import type { DeliveryKey, Outcome } from './delivery.js';
import { fingerprintOf, type Message } from './message.js';

const MAX_RECIPIENT_LENGTH = 80;

/**
 * The name of a mail's file: readable, and with a fingerprint that keeps any two apart whatever a project or recipient
 * is called.
 */
function outboxFileName(key: DeliveryKey): string {
  const plain = (text: string) => text.replaceAll(/[^A-Za-z0-9@._+-]/g, '_');
  const recipient = plain(key.recipient).slice(0, MAX_RECIPIENT_LENGTH);
  return `${plain(key.report)}-${plain(key.period)}-${recipient}-${fingerprintOf(key).slice(0, 16)}.eml`;
}

/** Puts a mail into the outbox, whole or not at all. The words of the outcome are the path of the file. */
export async function putIntoOutbox(directory: string, message: Message): Promise<Outcome> {
  const path = join(directory, outboxFileName(message.key));
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = await open(`${path}.unfinished`, 'w', 0o600);
    try {
      await file.writeFile(message.bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.unfinished`, path);
    return { kind: 'sent', words: path };
  } catch (error) {
    return { kind: 'later', words: `cannot write ${path}: ${messageOf(error)}` };
  }
}
