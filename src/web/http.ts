import { HTTPException } from 'hono/http-exception';
import { Readable } from 'node:stream';
import { formatAnswer } from '../sql/formats.js';
import { colorsOf } from '../terminal/output.js';
import type { WebContext } from './access.js';
import type { Asker, Row } from './asked.js';

/** The headers of every response that does not set its own. */
export const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // With none at all, browsers would not say where the forms of this site come from.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

const MAX_FORM_BYTES = 256 * 1024;

/** Who asks, with a signal that aborts when the browser no longer waits for the answer. */
export function askerOf(c: WebContext): Asker {
  const left = new AbortController();
  c.env.outgoing.once('close', () => {
    left.abort();
  });
  return { visitor: c.get('visitor'), signal: left.signal };
}

/** Makes the response a download. */
export function attach(c: WebContext, type: string, name: string): void {
  c.header('Content-Type', type);
  c.header('Content-Disposition', `attachment; filename="${name}"`);
}

/** The fields of a form. Throws an `HTTPException` (413) if it is too large. */
export async function formOf({ env: { incoming } }: WebContext): Promise<URLSearchParams> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    size += chunks.at(-1)?.length ?? 0;
    if (size > MAX_FORM_BYTES) throw new HTTPException(413, { message: 'The form is too large.' });
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}

/** Rows as CSV that no spreadsheet runs as formulas. */
export async function csvOf(rows: readonly Row[]): Promise<string> {
  const columns = Object.keys(rows[0] ?? {}).map((name) => ({
    name,
    isNumeric: name !== 'path',
    isText: true,
  }));
  const batches = Readable.from([rows.map((row) => columns.map(({ name }) => row[name] ?? null))]);
  const style = { colors: colorsOf(), width: Infinity, maxRows: Infinity, isTerminal: false };
  let text = '';
  for await (const piece of formatAnswer({ columns, batches, unseen: 0 }, 'csv', style)) text += piece;
  return text;
}
