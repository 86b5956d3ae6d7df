import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { ask, connectionFailure, connections } from '../network.js';
import { redactor } from '../redact.js';
import type { Departure } from '../warehouse/effects.js';
import type { Post } from './channel.js';
import type { Outcome } from './delivery.js';

/** For the whole exchange. Long, because a timeout after sending the request leaves its outcome unknown. */
const TIMEOUT_MS = 60_000;

/** A channel's response is stored in the ledger and shown on terminals. */
const MAX_WORDS = 300;

/** Posts a notice to its channel once, without following redirects. Never throws: every failure is an outcome. */
export async function post(
  { id, channel, body }: Post,
  _: Departure,
  now: Date,
  interruption: AbortSignal,
  timeoutMs = TIMEOUT_MS,
): Promise<Outcome> {
  if ('problem' in channel) return { kind: 'later', words: channel.problem };
  const { kind, url, key, secrets } = channel;
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    ...(key === undefined ? {} : signatureOf({ id, body, key }, now)),
  };
  const signal = AbortSignal.any([interruption, AbortSignal.timeout(timeoutMs)]);
  const answer = await exchange(url, headers, body, signal);
  const redact = redactor(secrets);
  const said = (words: string) => redact(`${kind} at ${url.host} ${words}`).slice(0, MAX_WORDS);
  if ('status' in answer)
    return {
      kind: classifyStatus(answer.status, answer.saysWhen),
      words: said(`answered ${answer.status}${answer.text === '' ? '' : `: ${answer.text}`}`),
    };
  const words = `${answer.isSent ? 'did not answer' : 'could not be reached'}: ${connectionFailure(answer.error)}`;
  return { kind: answer.isSent ? 'unknown' : 'later', words: said(words) };
}

/** The headers of Standard Webhooks: HMAC-SHA256 over id, time in seconds, and body. */
function signatureOf({ id, body, key }: { id: string; body: string; key: Buffer }, now: Date) {
  const timestamp = Math.floor(now.getTime() / 1_000).toString();
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

/** Refusals that concern the address or the moment, not the content. */
const ABOUT_THE_CHANNEL = new Set([301, 307, 308, 401, 403, 404, 410, 425, 429]);
/** A gateway may return these after it forwarded the notice, unless it sends a Retry-After. */
const OF_GATEWAYS = new Set([408, 503]);

/**
 * What a status says about the notice. A server error does not reveal whether the notice was accepted, nor does a
 * redirect, which some servers (such as Google Apps Script) return after accepting it.
 */
function classifyStatus(status: number, saysWhen: boolean): Outcome['kind'] {
  if (status >= 200 && status < 300) return 'sent';
  if (ABOUT_THE_CHANNEL.has(status)) return 'later';
  if (OF_GATEWAYS.has(status)) return saysWhen ? 'later' : 'unknown';
  return status >= 400 && status < 500 ? 'refused' : 'unknown';
}

type Answer =
  | { readonly status: number; readonly saysWhen: boolean; readonly text: string }
  | { readonly error: unknown; readonly isSent: boolean };

/** One request over its own connection. Until its body is read, nothing can have arrived. */
async function exchange(
  url: URL,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  let isSent = false;
  const sent = Readable.from(
    (function* () {
      isSent = true;
      yield body;
    })(),
  );
  const dispatcher = connections({ pipelining: 0 });
  try {
    const response = await ask(url.href, { method: 'POST', headers, body: sent, signal, dispatcher });
    const text = await firstWords(response.body);
    const saysWhen = response.headers['retry-after'] !== undefined;
    return { status: response.statusCode, saysWhen, text: text.replaceAll(/\s+/g, ' ').trim() };
  } catch (error) {
    return { error, isSent };
  } finally {
    await dispatcher.destroy();
  }
}

/** The status is the answer, so the rest of the response does not matter. */
async function firstWords(body: Readable): Promise<string> {
  let text = '';
  try {
    for await (const piece of body.setEncoding('utf8')) {
      text += String(piece);
      if (text.length > MAX_WORDS) break;
    }
  } catch {
    // What came of it is enough.
  }
  return text;
}
