import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ChannelSettings } from '../config/recipients.js';
import { isUnencrypted } from '../config/values.js';
import { codeOf } from '../errors.js';
import { redactor, unmistakable } from '../redact.js';
import { shortened } from '../format/text.js';
import { timeLimit } from '../sleep.js';
import type { DeliveryKey } from '../state/emails.js';
import type { Attempt } from '../state/sender.js';
import { MAX_WORDS, type SendOutcome } from './delivery.js';

/** A channel with its address, or the reason why it has none. */
export type Channel = { readonly kind: ChannelSettings['kind'] } & (
  | { readonly url: URL; readonly key: Buffer | undefined; readonly secrets: readonly string[] }
  | { readonly problem: string }
);

/** A notice for one channel. The address and the key are secrets. */
export interface Post {
  readonly key: DeliveryKey;
  readonly id: string;
  readonly channel: Channel;
  readonly body: string;
}

/** As required by Standard Webhooks: 24 to 64 bytes, in base64. */
const SECRET = /^whsec_(?=.{32,88}$)[A-Za-z0-9+/]+={0,2}$/;

/** Reads the variables that a channel names. Problems do not repeat their values. */
export function openChannel(
  { kind, urlEnv, secretEnv }: ChannelSettings,
  environment: Readonly<Record<string, string | undefined>>,
): Channel {
  const url = environment[urlEnv] ?? '';
  if (url === '')
    return { kind, problem: `${urlEnv} is not set: set it to the address, in the environment or .env` };
  if (!/^https?:/.test(url) || !URL.canParse(url) || isUnencrypted(url))
    return { kind, problem: `${urlEnv} is not an address that begins with https://` };
  const secret = (secretEnv === undefined ? undefined : environment[secretEnv]) ?? '';
  if (secretEnv !== undefined && !SECRET.test(secret))
    return {
      kind,
      problem: `${secretEnv} ${secret === '' ? 'is not set' : 'is not a valid secret'}: set it to whsec_ and 24 to 64 random bytes in base64, such as the output of echo whsec_$(openssl rand -base64 32)`,
    };
  const key = secret === '' ? undefined : Buffer.from(secret.slice('whsec_'.length), 'base64');
  return { kind, url: new URL(url), key, secrets: [url, secret].flatMap(secretParts) };
}

/** Whether it is an address of an Office 365 connector, which posts nothing anymore. */
export const isRetired = ({ kind, url }: { readonly kind: Channel['kind']; readonly url: URL }): boolean =>
  kind === 'teams' && /(^|\.)(webhook|outlook)\.office(365)?\.com$/.test(url.hostname);

/** The key or the address of a channel, and the parts of an address, that cannot be ordinary words. */
export function secretParts(secret: string): string[] {
  const { pathname, search, searchParams } = URL.canParse(secret) ? new URL(secret) : new URL('https://x');
  return unmistakable([secret, pathname, search, ...pathname.split('/'), ...searchParams.values()]);
}

const MAX_ANSWER_BYTES = 100_000;

/** For the whole exchange. Long, because a timeout after sending the request leaves its outcome unknown. */
const TIMEOUT_MS = 60_000;

/**
 * Posts a notice to its channel once, without following redirects. Never throws: every failure is
 * an outcome.
 */
export async function post(
  { id, channel, body }: Post,
  _: Attempt,
  now: Date,
  interruption: AbortSignal,
): Promise<SendOutcome> {
  if ('problem' in channel) return { kind: 'not-sent', words: channel.problem };
  const { url, key, secrets } = channel;
  const outcome = (kind: SendOutcome['kind'], words: string): SendOutcome => {
    const said = redactor(secrets)(`${channel.kind} at ${url.host} ${words}`);
    return { kind, words: shortened(said, MAX_WORDS) };
  };
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    ...(key === undefined ? {} : signatureOf({ id, body, key }, now)),
  };
  const signal = timeLimit(TIMEOUT_MS, interruption);
  const sent = Readable.from([body]);
  // Loaded only here, because every command reads the addresses of channels.
  const { connectionFailure, connections, requestUrl } = await import('../network.js');
  const dispatcher = connections({ pipelining: 0, maxResponseSize: MAX_ANSWER_BYTES });
  try {
    const response = await requestUrl(url.href, { method: 'POST', headers, body: sent, signal, dispatcher });
    // The status is the answer, so a text that cannot be read does not matter.
    const text = (await response.body.text().catch(() => '')).replaceAll(/\s+/g, ' ').trim();
    const { statusCode: status, headers: answered } = response;
    const isRefused = channel.kind === 'teams' && TEAMS_FAILURE.test(text);
    const kind = isRefused ? 'not-sent' : classifyStatus(status, answered['retry-after'] !== undefined);
    return outcome(kind, `answered ${status}${text === '' ? '' : `: ${text}`}`);
  } catch (error) {
    const why = connectionFailure(error);
    // Until the body is read, nothing can have arrived.
    const isSent = sent.readableDidRead;
    const words = `${isSent ? 'did not answer' : 'could not be reached'}: ${why}`;
    const isSilent = signal.aborted || /TIMEDOUT|TIMEOUT/.test(codeOf(error) ?? '');
    return { ...outcome(isSent ? 'unknown' : 'not-sent', words), isSilent };
  } finally {
    await dispatcher.destroy();
  }
}

/** The headers of Standard Webhooks: HMAC-SHA256 over id, time in seconds, and body. */
function signatureOf({ id, body, key }: { id: string; body: string; key: Buffer }, now: Date) {
  const timestamp = Math.floor(now.getTime() / 1_000).toString();
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

/** Teams reports with status 200 that it did not post a notice, such as after too many of them. */
const TEAMS_FAILURE = /^Webhook message delivery failed/i;

/** Refusals that concern the address or the moment, not the content. */
const ABOUT_THE_CHANNEL = new Set([301, 307, 308, 401, 403, 404, 410, 425, 429]);
/** A gateway may return these after it forwarded the notice, unless it sends a Retry-After. */
const OF_GATEWAYS = new Set([408, 503]);

/**
 * What a status says about the notice. A server error does not reveal whether the notice was
 * accepted, nor does a redirect, which some servers (such as Google Apps Script) return after
 * accepting it.
 */
function classifyStatus(status: number, saysWhen: boolean): SendOutcome['kind'] {
  if (status >= 200 && status < 300) return 'sent';
  if (ABOUT_THE_CHANNEL.has(status)) return 'not-sent';
  if (OF_GATEWAYS.has(status)) return saysWhen ? 'not-sent' : 'unknown';
  return status >= 400 && status < 500 ? 'refused' : 'unknown';
}
