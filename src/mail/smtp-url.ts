import { SMTP_URL_VARIABLE } from '../config/load.js';
import { isLoopback } from '../config/values.js';
import { ConfigurationError } from '../errors.js';

/** The mail server that emails are sent through. */
export type SmtpServer = ReturnType<typeof parseSmtpUrl>;

/**
 * Reads `smtp://user:password@host:587` or `smtps://host`. A password is only sent encrypted,
 * except to this machine itself. Throws a `ConfigurationError` that does not repeat the address,
 * because it may contain a password.
 */
export function parseSmtpUrl(text: string) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable =
    url !== undefined &&
    /^smtps?:$/.test(url.protocol) &&
    url.hostname !== '' &&
    /^\/?$/.test(url.pathname) &&
    url.search + url.hash === '';
  if (!isUsable)
    throw invalid('is not of the form smtp://user:password@host:587 or smtps://user:password@host:465');
  const user = decode(url.username);
  const password = decode(url.password);
  if ((user === '') !== (password === ''))
    throw invalid('has a user name without a password, or a password without a user name');
  const host = url.hostname.replaceAll(/[[\]]/g, '');
  const secure = url.protocol === 'smtps:';
  return {
    host,
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    /** TLS from the first byte; otherwise STARTTLS if offered. */
    secure,
    /** Fail without STARTTLS. */
    requireTls: !secure && user !== '' && !isLoopback(host),
    /** Postfix creates a certificate of its own, and on this machine nobody listens in. A password needs a trusted one. */
    anyCertificate: user === '' && isLoopback(host),
    login: user === '' ? undefined : { user, password },
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid('has a % in its user name or password that is not encoded as %25');
  }
}

const invalid = (what: string): ConfigurationError =>
  new ConfigurationError(
    `${SMTP_URL_VARIABLE} ${what}. Encode characters such as @ : / % in a password as %40 %3A %2F %25.`,
  );
