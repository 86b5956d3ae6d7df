import addressParser from 'nodemailer/lib/addressparser';
import { domainToUnicode } from 'node:url';
import { z } from 'zod';
import { isSafe } from '../format/text.js';
import { ONE_LINE, parsedBy, pathPattern } from './values.js';

declare const addressBrand: unique symbol;

/** A bare email address with its domain in lower case, and an international one in its own letters. */
export type MailAddress = string & { readonly [addressBrand]: true };

/** The sender of an email; the name may be empty. */
export interface Sender {
  readonly name: string;
  readonly address: MailAddress;
  /** Whether the configuration names no sender, and this one was derived. */
  readonly isDerived?: boolean;
}

/** The maximum length of an address in SMTP (RFC 5321, 4.5.3.1). */
const MAX_LENGTH = 254;

// No spaces, so that an address cannot end a header line and begin another. Domains may be
// international; they are converted to ASCII when the email is composed.
const BARE = /^[^\s@<>()[\]\\,;:"]+@[^\s@<>()[\]\\,;:".]+(?:\.[^\s@<>()[\]\\,;:".]+)*$/u;

/** Reads `docs@example.com`; undefined for anything else. */
export function parseMailAddress(text: string): MailAddress | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_LENGTH || !isSafe(trimmed) || !BARE.test(trimmed)) return undefined;
  const domainStart = trimmed.indexOf('@') + 1;
  const domain = trimmed.slice(domainStart).toLowerCase();
  // The part before the @ is sent as it is written, in case a mail server distinguishes case. An international domain
  // has two spellings, which are one recipient.
  return (trimmed.slice(0, domainStart) + (domainToUnicode(domain) || domain)) as MailAddress;
}

/**
 * Reads `docs@example.com` or `Readership <docs@example.com>`; undefined for anything else,
 * including several addresses.
 */
export function parseSender(text: string): Sender | undefined {
  const [only, ...others] = addressParser(text);
  if (only === undefined || 'group' in only || others.length > 0) return undefined;
  const address = parseMailAddress(only.address);
  return address === undefined || !isSafe(only.name) ? undefined : { name: only.name, address };
}

/** The part before the @. */
export const localPartOf = (address: MailAddress): string => address.slice(0, address.indexOf('@'));

/** Whether an address such as `ann@example` may be incomplete. Mail servers of one's own may know such a domain. */
export function seemsIncomplete(address: MailAddress): boolean {
  const domain = domainOf(address);
  return domain !== 'localhost' && !domain.includes('.');
}

/** The part after the @. */
export const domainOf = (address: MailAddress): string => address.slice(address.indexOf('@') + 1);

declare const channelBrand: unique symbol;

/** The name of a configured channel. */
export type ChannelName = string & { readonly [channelBrand]: true };

/** A recipient of reports and alerts: an email address or the name of a channel. */
export type Recipient = MailAddress | ChannelName;

/** Whether two addresses or channels are the same: practically no mail server distinguishes case. */
export const isSameRecipient = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase();

/** A channel's name has no `@`. */
export const isAddress = (recipient: Recipient): recipient is MailAddress => recipient.includes('@');

const CHANNEL_NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** Reads an email address or the name of a channel; undefined for anything else. */
export const parseRecipient = (text: string): Recipient | undefined =>
  parseMailAddress(text) ?? (CHANNEL_NAME.test(text) ? (text as ChannelName) : undefined);

const recipient = parsedBy(
  parseRecipient,
  'not an email address: write one such as docs@example.com, or the name of a channel',
);

export const address = parsedBy(parseMailAddress, 'not an email address: write one such as docs@example.com');

/** As people type it. */
export const typedAddress = address.refine(
  (typed) => !seemsIncomplete(typed),
  'incomplete, because its domain has no dot: write one such as docs@example.com',
);

export const sender = parsedBy(
  parseSender,
  'not an email address: write docs@example.com, or Readership <docs@example.com>',
);

const isFirst = (one: Recipient, index: number, all: readonly Recipient[]): boolean =>
  all.findIndex((other) => isSameRecipient(other, one)) === index;

/** Removes duplicates. */
export const recipients = z
  .array(recipient)
  .max(500)
  .transform((all) => all.filter(isFirst))
  .default([]);

const channel = z.strictObject({
  kind: z.enum(['slack', 'teams', 'webhook'], { error: 'write slack, teams or webhook' }),
});

/** A channel, with the environment variables that contain its address and, for a webhook, the key that signs requests. */
export interface ChannelSettings extends z.infer<typeof channel> {
  readonly urlEnv: string;
  readonly secretEnv?: string | undefined;
}

/** The channel `docs-chat` has its address in `READERSHIP_CHANNEL_DOCS_CHAT`. */
function channelNamed(name: string, { kind }: z.infer<typeof channel>): ChannelSettings {
  const inVariable = name.toUpperCase().replaceAll('-', '_');
  const urlEnv = `READERSHIP_CHANNEL_${inVariable}`;
  return kind === 'webhook'
    ? { kind, urlEnv, secretEnv: `READERSHIP_WEBHOOK_SECRET_${inVariable}` }
    : { kind, urlEnv };
}

const NOT_A_NAME = 'not a channel name: use lowercase letters, digits and hyphens';

export const channels = z
  .record(z.string().regex(CHANNEL_NAME), channel, {
    error: ({ code }) => (code === 'invalid_key' ? NOT_A_NAME : undefined),
  })
  .transform((all) =>
    Object.fromEntries(Object.entries(all).map(([name, settings]) => [name, channelNamed(name, settings)])),
  )
  .prefault({});

export const audience = z.strictObject({
  to: recipients,
  /** A path pattern that limits the pages, such as `/sdks/**`; `/sdks/` means the same. */
  where: pathPattern
    .regex(/^\S*$/, 'not a path pattern: write one such as /sdks/**')
    .refine(isSafe, ONE_LINE)
    .transform((text) => text.replace(/(?<=.)\/$/, '/**'))
    .optional(),
  /** One email about all projects instead of one per project. */
  digest: z.boolean().default(false),
});
/** The recipients of a report, and the part of it that they get. */
export type MailAudience = z.infer<typeof audience>;

/** One audience, or a list of them. */
export const audiences = z.union([audience.transform((one) => [one]), z.array(audience)], {
  error: 'unknown setting; write the recipients of a report as { to: [docs@example.com] }',
});

const isAudiences = (entry: [string, unknown]): entry is [string, MailAudience[]] => Array.isArray(entry[1]);

/** The reports that have recipients in the configuration, each with its audiences. */
export const audiencesIn = (reports: object): [string, MailAudience[]][] =>
  Object.entries(reports)
    .filter(isAudiences)
    .map(([report, all]) => [report, all.filter(({ to }) => to.length > 0)]);

interface RecipientSettings {
  readonly reports: object;
  readonly alerts: { readonly to: readonly Recipient[] };
  readonly channels: object;
}

/** The sender if the configuration names none: in the domain of the first recipient of emails. */
export function derivedSender(settings: Pick<RecipientSettings, 'reports' | 'alerts'>): Sender | undefined {
  const ofReports = audiencesIn(settings.reports).flatMap(([, all]) => all.flatMap(({ to }) => to));
  const first = [...ofReports, ...settings.alerts.to].find(isAddress);
  if (first === undefined) return undefined;
  return { name: 'Readership', address: `readership@${domainOf(first)}` as MailAddress, isDerived: true };
}

/**
 * Contradictions between recipients, channels and mail settings: each problem with its path in the
 * configuration.
 */
export function recipientProblems({ reports, alerts, channels }: RecipientSettings) {
  const known = Object.keys(channels);
  const ofReports = audiencesIn(reports).map(([name, all]) => ({
    path: ['reports', name],
    to: all.flatMap(({ to }) => to),
  }));
  const problems: { path: string[]; message: string }[] = [];
  for (const { path, to } of [...ofReports, { path: ['alerts'], to: alerts.to }]) {
    const report = (key: readonly string[], message: string) =>
      problems.push({ path: [...path, ...key], message });
    const twice = to.find((one, index) => !isFirst(one, index, to));
    if (twice !== undefined)
      report([], `${twice} is in two audiences; each recipient gets a report only once`);
    for (const stray of to.filter((one) => !isAddress(one) && !known.includes(one)))
      report(
        ['to'],
        `${stray} is neither an email address nor one of the channels${known.length === 0 ? ': add it under channels' : `, which are ${known.join(', ')}`}`,
      );
  }
  return problems;
}
