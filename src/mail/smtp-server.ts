import { ConfigurationError } from '../errors.js';

/** The mail server to hand mails to. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte; else STARTTLS where it is offered. */
  readonly secure: boolean;
  /** Refuse to go on without STARTTLS. */
  readonly requireTls: boolean;
  readonly login?: { readonly user: string; readonly password: string };
}

export const SMTP_URL_VARIABLE = 'READERSHIP_SMTP_URL';

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;

/**
 * Reads `smtp://user:password@host:587` or `smtps://host`. A password travels encrypted or not at all, except to this
 * machine itself. Throws a `ConfigurationError` that does not repeat the address, since it may hold a password.
 */
export function parseSmtpUrl(text: string): SmtpServer {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable =
    url !== undefined &&
    /^smtps?:$/.test(url.protocol) &&
    url.hostname !== '' &&
    /^\/?$/.test(url.pathname) &&
    url.search + url.hash === '';
  if (!isUsable)
    throw faulty('is not of the form smtp://user:password@host:587 or smtps://user:password@host:465');
  const user = decode(url.username);
  const password = decode(url.password);
  if ((user === '') !== (password === '')) throw faulty('has a user name without a password, or the reverse');
  const host = url.hostname.replaceAll(/[[\]]/g, '');
  const secure = url.protocol === 'smtps:';
  return {
    host,
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    requireTls: !secure && user !== '' && !LOOPBACK.test(host),
    ...(user === '' ? {} : { login: { user, password } }),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw faulty('has a % in its user name or password that is not written as %25');
  }
}

const faulty = (what: string): ConfigurationError =>
  new ConfigurationError(
    `${SMTP_URL_VARIABLE} ${what}. Characters such as @ : / % in a password are written as %40 %3A %2F %25.`,
  );
