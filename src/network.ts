import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { codeOf, ConfigurationError, isUnresolvable, messageOf } from './errors.js';
import { version } from './files.js';

/** The User-Agent of every request. */
export const USER_AGENT = `readership/${version}`;

const PROXIES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'];
/** Hosts that a proxy on another machine could not reach. */
const THIS_MACHINE = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Connections through HTTP_PROXY or HTTPS_PROXY, except to this machine and hosts in NO_PROXY.
 * Throws a `ConfigurationError` if the address of a proxy is not valid.
 */
export function connections(limits: Agent.Options = {}): Dispatcher {
  const { env } = process;
  const named = proxiesSet();
  if (named.length === 0) return new Agent(limits);
  const noProxy = [env['no_proxy'] ?? env['NO_PROXY'] ?? '', ...THIS_MACHINE].join(',');
  try {
    return new EnvHttpProxyAgent({ ...limits, noProxy });
  } catch (cause) {
    // The cause quotes the address, which may contain a password.
    if (!(cause instanceof Error)) throw cause;
    throw new ConfigurationError(
      `${named.join(' or ')} is not the address of a proxy, such as http://proxy.example.com:3128.`,
    );
  }
}

const proxiesSet = () => PROXIES.filter((name) => (process.env[name] ?? '') !== '');

let shared: Dispatcher | undefined;

type Asked = { signal: AbortSignal } & Partial<Pick<Dispatcher.RequestOptions, 'method' | 'body'>> & {
    headers?: Record<string, string>;
    dispatcher?: Dispatcher;
  };

/** Sends a request to any address, not only the platform's. */
export function requestUrl(url: string, { headers, dispatcher, method = 'GET', ...options }: Asked) {
  const { origin, pathname, search } = new URL(url);
  return (dispatcher ?? (shared ??= connections())).request({
    ...options,
    origin,
    path: pathname + search,
    method,
    headers: { 'user-agent': USER_AGENT, ...headers },
  });
}

const UNTRUSTED = /SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE/;

/** Why a connection failed, with advice for proxies and for certificates of a private authority. */
export function connectionFailure(cause: unknown): string {
  const code = codeOf(cause) ?? '';
  const host = cause instanceof Error && 'hostname' in cause ? String(cause.hostname) : '';
  const words = isUnresolvable(cause)
    ? `there is no host named ${host}`
    : code === 'ERR_SSL_WRONG_VERSION_NUMBER'
      ? 'this port does not speak TLS, so https:// may be wrong'
      : messageOf(cause) || code;
  const named = proxiesSet();
  if (!UNTRUSTED.test(code)) return named.length === 0 ? words : `${words} (${named.join(' and ')} set)`;
  return `${words}: Node.js does not know the authority that signed its certificate. If it is your company's, start Readership with NODE_EXTRA_CA_CERTS naming the authority's certificate, as docs/operations.md shows`;
}
