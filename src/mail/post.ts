import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { ask, connectionFailure, connections } from '../network.js';
import { redactor } from '../redact.js';
import type { Departure } from '../warehouse/effects.js';
import type { Post } from './channel.js';
import type { Outcome } from './delivery.js';

/** All of an exchange. Long, because a timeout once the request is on its way leaves its outcome unknown. */
const TIMEOUT_MS = 60_000;

/** What a channel answers ends up in the ledger and on terminals. */
const MAX_WORDS = 300;

/** Posts a notice to its channel, once; follows no redirect. Never throws: whatever happens is an outcome. */
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

/** The headers of Standard Webhooks: HMAC-SHA256 over id, moment in seconds, and body. */
function signatureOf({ id, body, key }: { id: string; body: string; key: Buffer }, now: Date) {
  const timestamp = Math.floor(now.getTime() / 1_000).toString();
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

/** Refusals that are about the address or the moment, not about what was posted. */
const ABOUT_THE_CHANNEL = new Set([301, 307, 308, 401, 403, 404, 410, 425, 429]);
/** A gateway may answer these after it passed the notice on, unless it says when to come back. */
const OF_GATEWAYS = new Set([408, 503]);

/**
 * What a status says of the notice. An error of the server does not tell whether it took it before, nor does a redirect
 * that some (Google Apps Script, for one) give as the answer to what they took.
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

/** One request over a connection of its own. Until its body is taken, nothing can have arrived. */
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

/** The status was the answer, so it does not matter whether the rest of it comes. */
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
