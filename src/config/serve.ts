import { z } from 'zod';
import { isLoopback, listeningHost, NOT_A_URL } from './values.js';

/** A password hash from `readership serve --hash-password`. */
const passwordHash = z
  .string()
  .regex(
    /^scrypt:[\w-]{22}:[\w-]{43}$/,
    'not a hash: run readership serve --hash-password, and copy its line',
  );

const HAS_A_PATH =
  'has a path, but the web app needs a host of its own: write it as https://readers.example.com';

export const serveSchema = z
  .strictObject({
    host: listeningHost.prefault('127.0.0.1'),
    port: z.int().min(0).max(65_535).default(8420),
    url: z
      .url({ protocol: /^https?$/, error: NOT_A_URL })
      .refine((url) => !URL.canParse(url) || new URL(url).pathname === '/', HAS_A_PATH)
      .transform((url) => new URL(url).origin)
      .optional()
      .describe('the address that browsers use, behind a reverse proxy'),
    auth: z.enum(['link', 'password', 'proxy']).optional(),
    password: passwordHash.optional(),
    viewerPassword: passwordHash
      .optional()
      .describe('for visitors who may read and query, but not change anything'),
    header: z
      .string()
      .regex(/^[\w-]+$/, 'not the name of a header')
      .optional()
      .describe("the header in which the proxy sends the visitor's name"),
    proxies: z
      .array(
        z.union(
          [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
          'not an address such as 10.0.0.2 or 10.0.0.0/24',
        ),
      )
      .min(1)
      .optional()
      .describe('the addresses of the proxy; connections from others are refused'),
    editors: z.array(z.string().min(1)).optional().describe('who may make changes; by default all visitors'),
  })
  .superRefine(({ auth, password, header, host, proxies }, context) => {
    const lacks = (key: string, message: string) => {
      context.addIssue({ code: 'custom', path: [key], message });
    };
    if (auth === 'proxy' && header === undefined)
      lacks('auth', "proxy also needs header, in which the proxy sends the visitor's name");
    if (auth === 'password' && password === undefined)
      lacks('auth', 'password also needs password, a line that readership serve --hash-password writes');
    if (auth === undefined && password === undefined)
      lacks(
        'password',
        'is missing, and readership start serves the web app only with one: run readership serve --hash-password and copy its line; or set auth: proxy, or auth: link to use this section only for readership serve',
      );
    const why = whyOpenToAll({ auth: auth ?? 'password', host, proxies });
    if (why !== undefined) lacks('host', why);
  })
  .transform((serve) => ({ ...serve, auth: serve.auth ?? ('password' as const) }));

export type ServeSettings = z.infer<typeof serveSchema>;

/** What to set because anyone on the network could get in; undefined if nobody can. */
export function whyOpenToAll({ host, auth, proxies }: Pick<ServeSettings, 'host' | 'auth' | 'proxies'>) {
  if (isLoopback(host) || auth === 'password' || (auth === 'proxy' && proxies !== undefined))
    return undefined;
  const where = `${host} can be reached by others: set`;
  return auth === 'link'
    ? `${where} serve.password (its hash: readership serve --hash-password), or serve.auth: proxy with serve.header. See docs/serve.md.`
    : `${where} serve.proxies to the addresses of the proxy, because any other machine could pretend to be any user. Or listen on 127.0.0.1. See docs/serve.md.`;
}

export const DEFAULT_SERVE: ServeSettings = serveSchema.parse({ auth: 'link' });
