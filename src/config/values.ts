import { z } from 'zod';
import { parseDay } from '../day.js';
import { isSafe } from '../format/text.js';
import { cronProblem } from './cron.js';

/** A schema that parses text with `parse`, and reports `problem` if that returns undefined. */
export const parsedBy = <Value>(parse: (text: string) => Value | undefined, problem: string) =>
  z.string().transform((text, context): Value => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue(problem);
    return z.NEVER;
  });

/** A day written `YYYY-MM-DD`. */
export const day = parsedBy(parseDay, 'not a day: write YYYY-MM-DD, such as 2026-01-31');

/** Whether a text is the path of a local directory. */
const isLocal = (path: string): boolean => !/^[a-z][a-z0-9+.-]+:\//i.test(path);

/** Only a shell takes ~ for a directory; here it would be one of that name. */
export const isDirectory = (path: string): boolean => isLocal(path) && !/^~(\/|$)/.test(path);

export const localPath = z
  .string()
  .min(1)
  .refine(isDirectory, 'not a local directory: write a path, in full instead of with ~');

export const NOT_A_DATASET_DIRECTORY =
  'not a local directory: write a path, in full instead of with ~, and to copy it into a bucket, set publish.then: docs/scale.md';

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** The longest timer of Node.js. */
const MAX_DURATION_MS = 576 * 3_600_000;
export const DURATION_FORM = 'write a whole number and ms, s, m or h, such as 2m, up to 576h';

/** Milliseconds in a duration such as `500ms`, `30s`, `2m` or `1h`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,7})\s*(ms|[smh])$/.exec(text.trim()) ?? [];
  const unitMs = DURATION_UNITS[unit];
  if (amount === undefined || unitMs === undefined) return undefined;
  const durationMs = Number(amount) * unitMs;
  return durationMs <= MAX_DURATION_MS ? durationMs : undefined;
}

export const namesNoUser = (url: string): boolean => !/^https?:[/\\]*[^/\\]*@/i.test(url);
export const NAMES_A_USER = 'contains a user name or password; secrets belong in the environment';

export const NOT_A_URL = 'enter a full URL that starts with https://';

export const httpUrl = z.url({ protocol: /^https?$/, error: NOT_A_URL }).refine(namesNoUser, NAMES_A_USER);

/** An address to which paths are appended; `what` names them. */
export const baseAddress = (what = 'paths') =>
  httpUrl
    .refine((url) => !/[?#]/.test(url), `contains a query or a fragment, but ${what} are appended to it`)
    .transform((url) => url.replace(/\/+$/, ''));

/** A name or an address to listen on. An IPv6 address may have the brackets that URLs need. */
export const listeningHost = z
  .string()
  .regex(/^(?:[\w.:-]+|\[[\w.:-]+\])$/, 'not a name or an address of this machine')
  .transform((host) => host.replace(/^\[|\]$/g, ''));

/** Whether a host is this machine. */
export const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d+){3}|::1|\[::1\])$/.test(host);

/** Whether requests to an address leave this machine without TLS. */
export const isUnencrypted = (url: string): boolean => {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
};

export const ONE_LINE = 'write text on one line, without invisible characters';

/** Text for subjects and headings. Joiners are allowed because emoji and some scripts need them. */
export const oneLine = z
  .string()
  .min(1, ONE_LINE)
  .refine((text) => isSafe(text.replace(/[\u200c\u200d]/g, '')), ONE_LINE);

/** A key pasted here would pass for a name, and be shown as one, if names could have small letters. */
export const variableName = z
  .string()
  .regex(
    /^(?!(?=.*\d)[A-Z0-9]{20})[A-Z_][A-Z0-9_]*$/,
    'not the name of an environment variable: write one in capitals, such as ACME_API_KEY, and the key itself in .env next to this file: ACME_API_KEY=…',
  );

const isTimezone = (name: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
};

export const timezone = z
  .string()
  .refine(isTimezone, 'not a time zone: write a name such as Europe/Zurich, or UTC')
  .default('UTC');

export const cron = z.string().superRefine((text, context) => {
  const problem = cronProblem(text);
  if (problem === undefined) return;
  const form = "minute, hour, day, month and weekday, such as '15 2 * * *'";
  context.addIssue(`not a cron expression: ${problem}; write ${form}`);
});

/** A pattern of paths, such as `/sdks/**`. A regular expression would match no page, and pages are named without the ending of their address. */
export const pathPattern = z.string().regex(/^(?!.*(?:\\|\$$|\/\.[*+]|[*?\]})][^/]*\.(?:html|mdx?)$))\//, {
  error:
    'matches no page: write a path that begins with /, such as /docs/**, without .html or .md at its end; regular expressions are not supported',
  abort: true,
});
