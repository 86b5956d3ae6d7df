import { z } from 'zod';

/** A password hash from `readership serve --hash-password`. */
const passwordHash = z
  .string()
  .regex(
    /^scrypt:[\w-]{22}:[\w-]{43}$/,
    'not a hash: run readership serve --hash-password, and copy its line',
  );

export const serveSchema = z
  .strictObject({
    host: z
      .string()
      .regex(/^[\w.:-]+$/, 'not a name or an address of this machine')
      .default('127.0.0.1'),
    port: z.int().min(0).max(65_535).default(8420),
    url: z
      .url({ protocol: /^https?$/, error: 'not an address: write https://…' })
      .transform((url) => new URL(url).origin)
      .optional()
      .describe('where browsers find it, behind a reverse proxy'),
    auth: z.enum(['link', 'password', 'proxy']).optional(),
    password: passwordHash.optional(),
    viewerPassword: passwordHash.optional().describe('of those who may look and ask, but change nothing'),
    header: z
      .string()
      .regex(/^[\w-]+$/, 'not the name of a header')
      .optional()
      .describe('in which the proxy names the visitor'),
    proxies: z
      .array(
        z.union(
          [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
          'not an address such as 10.0.0.2 or 10.0.0.0/24',
        ),
      )
      .min(1)
      .optional()
      .describe('the addresses of the proxy: no other may connect'),
    editors: z.array(z.string().min(1)).optional().describe('the visitors that may act; all when left out'),
  })
  .superRefine(({ auth, password, header }, context) => {
    const lacks = (key: string, message: string) => {
      context.addIssue({ code: 'custom', path: [key], message });
    };
    if (auth === 'proxy' && header === undefined)
      lacks('auth', 'proxy also needs header, the name of the header in which the proxy says who it is');
    if (auth === 'password' && password === undefined)
      lacks('auth', 'password also needs password, a line that readership serve --hash-password writes');
  })
  .transform((serve) => ({
    ...serve,
    auth: serve.auth ?? (serve.password === undefined ? ('link' as const) : ('password' as const)),
  }));

export type ServeSettings = z.infer<typeof serveSchema>;

export const DEFAULT_SERVE: ServeSettings = serveSchema.parse({});
