import { createHmac } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { messageOf } from '../errors.js';
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
    'content-length': Buffer.byteLength(body),
    'user-agent': 'Readership',
    ...(key === undefined ? {} : signatureOf({ id, body, key }, now)),
  };
  const signal = AbortSignal.any([interruption, AbortSignal.timeout(timeoutMs)]);
  const answer = await exchange(url, headers, body, signal);
  const redact = redactor(secrets);
  const said = (words: string) => redact(`${kind} at ${url.host} ${words}`).slice(0, MAX_WORDS);
  if ('status' in answer)
    return {
      kind: classifyStatus(answer.status),
      words: said(`answered ${answer.status}${answer.text === '' ? '' : `: ${answer.text}`}`),
    };
  const words = `${answer.isConnected ? 'did not answer' : 'could not be reached'}: ${messageOf(answer.error)}`;
  return { kind: answer.isConnected ? 'unknown' : 'later', words: said(words) };
}

/** The headers of Standard Webhooks: HMAC-SHA256 over id, moment in seconds, and body. */
function signatureOf({ id, body, key }: { id: string; body: string; key: Buffer }, now: Date) {
  const timestamp = Math.floor(now.getTime() / 1_000).toString();
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

/** Refusals that are about the address or the moment, not about what was posted. */
const ABOUT_THE_CHANNEL = new Set([401, 403, 404, 408, 410, 425, 429, 503]);

/** What a status says of the notice. An error of the server does not tell whether it took it before. */
function classifyStatus(status: number): Outcome['kind'] {
  if (status >= 200 && status < 300) return 'sent';
  if (status < 400 || ABOUT_THE_CHANNEL.has(status)) return 'later';
  return status < 500 ? 'refused' : 'unknown';
}

type Answer =
  | { readonly status: number; readonly text: string }
  | { readonly error: unknown; readonly isConnected: boolean };

/** One request over a connection of its own. Until that stands, nothing can have arrived. */
function exchange(
  url: URL,
  headers: http.OutgoingHttpHeaders,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  const isSecure = url.protocol === 'https:';
  const { request } = isSecure ? https : http;
  return new Promise((resolve) => {
    let isConnected = false;
    const sent = request(url, { method: 'POST', headers, agent: false, signal }, (response) => {
      let text = '';
      const end = () => {
        resolve({ status: response.statusCode ?? 0, text: text.replaceAll(/\s+/g, ' ').trim() });
        sent.destroy();
      };
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (text.length > MAX_WORDS) end();
      });
      // The status was the answer, so it does not matter whether the rest of it comes.
      response.on('end', end).on('error', end);
    });
    sent.on('socket', (socket) =>
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        isConnected = true;
      }),
    );
    sent.on('error', (error) => {
      resolve({ error, isConnected });
    });
    sent.end(body);
  });
}
