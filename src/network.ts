import type { IncomingHttpHeaders } from 'node:http';
import { Agent, type Dispatcher, Pool, ProxyAgent } from 'undici';
import { codeOf, isUnresolvable, messageOf, tlsWords } from './errors.js';
import { version } from './files.js';
import { proxyVariables, proxyFor } from './proxy.js';

/** The User-Agent of every request. */
export const USER_AGENT = `readership/${version}`;

/** From the lookup of the host to the end of the TLS handshake. All addresses of the host may be tried. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Gateways add long cookies and policies. By default, a response with more than 16 KB of headers fails. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Connections through HTTP_PROXY or HTTPS_PROXY, except to this machine and hosts in NO_PROXY.
 * Throws a `ConfigurationError` if the address of a proxy is not valid.
 */
export function connections(given: Agent.Options = {}): Dispatcher {
  const { env } = process;
  const limits = { connectTimeout: CONNECT_TIMEOUT_MS, maxHeaderSize: MAX_HEADER_BYTES, ...given };
  if (proxyVariables(env).length === 0) return new Agent(limits);
  // An invalid address is found before anything is sent.
  for (const url of ['http://any.invalid', 'https://any.invalid']) proxyFor(new URL(url), env);
  const factory = (origin: string | URL): Dispatcher => {
    const proxy = proxyFor(new URL(origin), env);
    const toProxy = {
      proxyTls: { timeout: CONNECT_TIMEOUT_MS },
      requestTls: { timeout: CONNECT_TIMEOUT_MS },
    };
    return proxy === undefined
      ? new Pool(origin, limits)
      : new ProxyAgent({ ...limits, ...toProxy, ...proxy });
  };
  return new Agent({ ...limits, factory });
}

let shared: Dispatcher | undefined;

type UrlRequest = { signal: AbortSignal } & Partial<Pick<Dispatcher.RequestOptions, 'method' | 'body'>> & {
    headers?: Record<string, string>;
    dispatcher?: Dispatcher;
  };

/** The headers of a response, by their names in lower case. */
export type ResponseHeaders = Readonly<Partial<Record<string, string>>>;

/** Of a header that is repeated, the first value counts: gateways add their own to the server's. */
export const singleValues = (headers: IncomingHttpHeaders): ResponseHeaders =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'object' ? value[0] : value]),
  );

/** Sends a request to any address, not only the platform's. */
export async function requestUrl(
  url: string,
  { headers, dispatcher, method = 'GET', ...options }: UrlRequest,
) {
  const { origin, pathname, search } = new URL(url);
  const response = await (dispatcher ?? (shared ??= connections())).request({
    ...options,
    origin,
    path: pathname + search,
    method,
    headers: { 'user-agent': USER_AGENT, ...headers },
  });
  return { ...response, headers: singleValues(response.headers) };
}

const UNTRUSTED = /SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE/;

/** A status with which a proxy refused to connect, in the words of undici. */
const REFUSED_BY_PROXY = /^Proxy response \((\d+)\)/;

/** Whether a connection failed for a reason that lasts, so that trying again within minutes would not help. */
export function isLasting(cause: unknown): boolean {
  const [, status = ''] = REFUSED_BY_PROXY.exec(messageOf(cause)) ?? [];
  return isUnresolvable(cause) || UNTRUSTED.test(codeOf(cause) ?? '') || status.startsWith('4');
}

/** Why a connection failed, with advice for proxies and for certificates of a private authority. */
export function connectionFailure(cause: unknown): string {
  const code = codeOf(cause) ?? '';
  const named = proxyVariables(process.env).join(' and ');
  const [, status] = REFUSED_BY_PROXY.exec(messageOf(cause)) ?? [];
  if (status === '407')
    return `the proxy asks for a login: add it to ${named} as http://user:password@host:port`;
  if (status !== undefined) return `the proxy refused the connection with status ${status} (${named} set)`;
  const host = cause instanceof Error && 'hostname' in cause ? String(cause.hostname) : '';
  const words = isUnresolvable(cause)
    ? `there is no host named ${host}`
    : (tlsWords(cause) ?? (messageOf(cause) || code));
  if (!UNTRUSTED.test(code)) return named === '' ? words : `${words} (${named} set)`;
  return `${words}: Node.js does not know the authority that signed its certificate. If it is your company's, start Readership with NODE_EXTRA_CA_CERTS naming the authority's certificate, as docs/operations.md shows`;
}
