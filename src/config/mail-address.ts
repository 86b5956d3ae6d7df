import addressParser from 'nodemailer/lib/addressparser';
import { isSafe } from '../format/text.js';

declare const addressBrand: unique symbol;

/** A bare email address with its domain in lower case: two that are equal reach the same mailbox. */
export type MailAddress = string & { readonly [addressBrand]: true };

/** The sender of an email; the name may be empty. */
export interface Sender {
  readonly name: string;
  readonly address: MailAddress;
}

/** The address in a preview: RFC 2606 reserves its domain. */
export const NOBODY: Sender = { name: 'Readership', address: 'nobody@example.invalid' as MailAddress };

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
  // The part before the @ may be case-sensitive on the receiving server.
  return (trimmed.slice(0, domainStart) + trimmed.slice(domainStart).toLowerCase()) as MailAddress;
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

/** The part after the @. */
export const domainOf = (address: MailAddress): string => address.slice(address.indexOf('@') + 1);
