import { request } from 'undici';
import { messageOf } from '../errors.js';

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
