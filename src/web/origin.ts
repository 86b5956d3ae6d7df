import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { BlockList, isIP } from 'node:net';
import type { ServeSettings } from '../config/serve.js';
import { isLoopback } from '../config/values.js';
import { localHosts } from '../http-server.js';

/** What a request says of where it comes from. */
type Incoming = Pick<Context<{ Bindings: HttpBindings }>, 'req' | 'env'>;

const hostIn = ({ req }: Incoming): string => req.header('Host') ?? 'none';

export const otherHost = (c: Incoming, { url }: ServeSettings): string =>
  `The host ${hostIn(c)} is not served here${url === undefined ? '' : `, but ${new URL(url).host} is`}. ` +
  'Behind a proxy, set serve.url to the address that browsers use, and let the proxy pass on its Host header.';

export const otherSite = (c: Incoming): string =>
  `The request came from another site (${c.req.header('Origin') ?? 'not named'}), and this one is ${hostIn(c)}. Nothing was done. ` +
  'If they are the same, let the proxy pass on the Host header with its port.';

/** Whether connections from an address are those of a proxy: one that the settings name, or else one on this machine. */
export function proxyTest({
  url,
  proxies,
}: Pick<ServeSettings, 'url' | 'proxies'>): (address: string) => boolean {
  if (proxies === undefined)
    return (address) => url !== undefined && /^(?:::ffff:)?127\.|^::1$/.test(address);
  const named = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) named.addAddress(address, family);
    else named.addSubnet(address, Number(bits), family);
  }
  return (address) => isIP(address) > 0 && named.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** The address of a client, which a proxy appends to a header. Without a proxy, anyone could. */
export function addressOf(c: Incoming, isProxy: (address: string) => boolean): string {
  const { remoteAddress = '' } = c.env.incoming.socket;
  const forwarded = isProxy(remoteAddress)
    ? c.req.header('X-Forwarded-For')?.split(',').at(-1)?.trim()
    : undefined;
  return forwarded ?? remoteAddress;
}

/** Stricter than `isOwnHost`, where any IP address passes, even that of another site. */
export function isOwnOrigin(c: Incoming, { url }: ServeSettings): boolean {
  const origin = c.req.header('Origin');
  const site = c.req.header('Sec-Fetch-Site');
  // With `Referrer-Policy: no-referrer`, a browser does not name even its own site.
  if (origin === 'null') return site === 'same-origin';
  // Other sites can abuse only a browser, and a browser says where a form comes from.
  if (origin === undefined) return site === 'same-origin' || c.req.header('Authorization') !== undefined;
  return origin === url || (URL.canParse(origin) && new URL(origin).host === c.req.header('Host'));
}

/**
 * Whether a request names this server. A web page whose own name is made to point here (DNS
 * rebinding) names its own host. An IP address cannot be made to point anywhere, so it passes where
 * the server listens for others.
 */
export function isOwnHost(c: Incoming, { host, url }: ServeSettings): boolean {
  const name = (c.req.header('Host') ?? '').toLowerCase();
  const own = [...localHosts(host, c.env.incoming.socket.localPort), url && new URL(url).host];
  // Some proxies name the port of the scheme.
  if (own.includes(name) || own.includes(name.replace(/:(?:80|443)$/, ''))) return true;
  const { hostname } = URL.canParse(`http://${name}`) ? new URL(`http://${name}`) : { hostname: '' };
  return !isLoopback(host) && isIP(hostname.replace(/^\[|\]$/g, '')) > 0;
}
