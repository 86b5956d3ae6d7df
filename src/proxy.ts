import { BlockList, isIP } from 'node:net';
import { ConfigurationError } from './errors.js';

type Variables = Readonly<Record<string, string | undefined>>;

const HTTP = ['http_proxy', 'HTTP_PROXY'];
const HTTPS = ['https_proxy', 'HTTPS_PROXY'];

/** The first of the variables that is set: an empty one does not hide the other spelling. */
const firstSet = (names: readonly string[], environment: Variables): string | undefined =>
  names.find((name) => (environment[name] ?? '') !== '');

/** Hosts that a proxy on another machine could not reach. */
const THIS_MACHINE = ['localhost', '127.0.0.0/8', '::1'];

/** The address of a proxy, and what it asks of those who use it. */
export interface Proxy {
  readonly uri: string;
  /** The `Proxy-Authorization` of its login. */
  readonly token?: string;
}

/** The variables that name a proxy. */
export const proxyVariables = (environment: Variables): string[] =>
  [...HTTP, ...HTTPS].filter((name) => (environment[name] ?? '') !== '');

/**
 * The proxy for an address; undefined if it is reached directly. Throws a `ConfigurationError` if the address of the proxy is
 * not valid.
 */
export function proxyFor(url: URL, environment: Variables): Proxy | undefined {
  const name = firstSet(url.protocol === 'http:' ? HTTP : [...HTTPS, ...HTTP], environment);
  if (name === undefined || isDirect(url, environment)) return undefined;
  return readProxy(name, environment[name] ?? '');
}

/** As curl does, without a scheme it is an HTTP proxy. */
function readProxy(name: string, address: string): Proxy {
  try {
    const url = new URL(/^[a-z][a-z\d+.-]*:\/\//i.test(address) ? address : `http://${address}`);
    const { protocol, origin, username, password } = url;
    if (protocol !== 'http:' && protocol !== 'https:') throw new Error('unknown scheme');
    if (username === '') return { uri: origin };
    const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return { uri: origin, token: `Basic ${Buffer.from(login).toString('base64')}` };
  } catch {
    // The cause quotes the address, which may contain a password.
    throw new ConfigurationError(
      `${name} is not the address of an HTTP proxy, such as http://proxy.example.com:3128.`,
    );
  }
}

function isDirect({ protocol, hostname, port }: URL, environment: Variables): boolean {
  const host = hostname.replace(/^\[(.*)\]$|\.$/g, '$1');
  const ownPort = port || (protocol === 'https:' ? '443' : '80');
  const name = firstSet(['no_proxy', 'NO_PROXY'], environment);
  const listed = name === undefined ? '' : (environment[name] ?? '');
  return [...listed.toLowerCase().split(/[,\s]+/), ...THIS_MACHINE].some((entry) => {
    const [, named = entry, namedPort = ownPort] = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
    return namedPort === ownPort && isNamed(host, named.replace(/^\[(.*)\]$/, '$1'));
  });
}

/** Whether an entry of NO_PROXY names a host: `*`, an address or range of addresses, or a domain with what is below it. */
function isNamed(host: string, entry: string): boolean {
  if (entry === '*') return true;
  const [address = '', bits] = entry.split('/');
  const family = isIP(address);
  if (family === 0) {
    const domain = entry.replace(/^\*?\.|\.$/g, '');
    return domain !== '' && (host === domain || host.endsWith(`.${domain}`));
  }
  const most = family === 4 ? 32 : 128;
  const length = Number(bits ?? most);
  if (isIP(host) !== family || !(length >= 0 && length <= most)) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(address, length, type);
  return range.check(host, type);
}
