import { z } from 'zod';
import { isLoopback, NOT_A_URL } from './values.js';

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
    url: z
      .url({ protocol: /^https?$/, error: NOT_A_URL })
      .refine((url) => !URL.canParse(url) || new URL(url).pathname === '/', HAS_A_PATH)
      .transform((url) => new URL(url).origin)
      .optional()
      .describe('the address that browsers use, behind a reverse proxy'),
    password: passwordHash.optional(),
    viewerPassword: passwordHash.optional().describe('for visitors who may read, but not change anything'),
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
  .superRefine(({ header, password, viewerPassword, editors }, context) => {
    const report = (setting: string, message: string): void =>
      context.addIssue({ code: 'custom', path: [setting], message });
    if (header === undefined && editors !== undefined)
      report(
        'editors',
        'restricts nobody, because only a proxy says who a visitor is: set serve.header, or give those who may only read a serve.viewerPassword',
      );
    if (header !== undefined)
      for (const [setting, hash] of Object.entries({ password, viewerPassword }))
        if (hash !== undefined)
          report(
            setting,
            'lets nobody in, because with serve.header people sign in at the proxy, and serve.editors are those who may make changes: remove one of them',
          );
    if (header === undefined && viewerPassword !== undefined && password === undefined)
      report(
        'viewerPassword',
        'lets nobody in without serve.password, the password of those who may make changes: set both',
      );
    if (viewerPassword !== undefined && viewerPassword === password)
      report('viewerPassword', 'is the same as serve.password, so nobody could only read: choose another');
  })
  .transform((serve) => ({ ...serve, auth: authOf(serve) }));

/** How people sign in. */
function authOf({
  header,
  password,
}: {
  header?: unknown;
  password?: unknown;
}): 'link' | 'password' | 'proxy' {
  if (header !== undefined) return 'proxy';
  return password === undefined ? 'link' : 'password';
}

/** The settings of a web app, and where it listens, which is an option of `serve` and `start`. */
export interface ServeSettings extends z.infer<typeof serveSchema> {
  readonly host: string;
  readonly port: number;
}

interface Listening {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

/** The settings of a web app that listens where the options say. */
export const serveAt = (
  serve: z.infer<typeof serveSchema>,
  { host = '127.0.0.1', port = 8420 }: Listening,
): ServeSettings => ({ ...serve, host, port });

export const DEFAULT_SERVE: ServeSettings = serveAt(serveSchema.parse({}), {});

/** What to do because anyone on the network could get in; undefined if nobody can. */
export function whyOpenToAll({
  host,
  auth,
  proxies,
}: Pick<ServeSettings, 'host' | 'auth' | 'proxies'>): string | undefined {
  if (isLoopback(host) || auth === 'password' || (auth === 'proxy' && proxies !== undefined))
    return undefined;
  const where = `${host} can be reached by others: set`;
  return auth === 'link'
    ? `${where} serve.password (its hash: readership serve --hash-password). See docs/serve.md.`
    : `${where} serve.proxies to the addresses of the proxy, because any other machine could pretend to be any user. Or listen on 127.0.0.1. See docs/serve.md.`;
}
