import { expect, it } from 'vitest';
import { z } from 'zod';
import type { PageViews } from '../../src/api/schema.js';
import { addDays, type Day, dayOf } from '../../src/day.js';
import { platformWorkspace } from '../commands/workspace.js';
import { servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';

const LAST_DAY = addDays(dayOf(new Date()), -1);
const FIRST_DAY = addDays(LAST_DAY, -7 * 10);
const GONE_SINCE = addDays(LAST_DAY, -3);

/** Human and AI views of each address on a day. */
const SITE: Readonly<Record<string, readonly [human: number, ai: number]>> = {
  '/guides/install': [400, 100],
  '/fr/guides/install': [300, 20],
  '/v1/guides/install': [200, 20],
  '/guides/node.js': [150, 20],
  '/gone': [900, 100],
  '/404': [800, 0],
  '/robots.txt': [10, 700],
  '/favicon.ico': [600, 0],
  '/assets/app.js': [500, 0],
  '/wp-login.php': [300, 0],
  '/llms.txt': [1, 250],
};

const rowsOf = (at: Day): PageViews[] =>
  at < FIRST_DAY || at > LAST_DAY
    ? []
    : Object.entries(SITE)
        .filter(([path]) => path !== '/gone' || at < GONE_SINCE)
        .map(([path, [human, ai]]) => ({ path, human, ai, total: human + ai }));

it('flags each page once, and no page that is gone, no file and no system address', async () => {
  const platform = await servePlatform({ now: () => new Date(), rowsOf });
  const cwd = await platformWorkspace(platform, '');
  const end = (...args: string[]) => callCli(args, { cwd, env: { READERSHIP_API_KEY: 'adm_key_1' } });
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await end(...args);
    expect(code, stderr).toBe(0);
    return stdout + stderr;
  };
  await run('export');

  const page = z.object({ path: z.string(), code: z.string(), why: z.string() });
  const plan = z.object({
    variants: z.array(z.string()),
    flagged: z.array(page),
    next: z.array(page),
    leftOut: z.array(page),
  });
  const [planned = expect.fail()] = z.array(plan).parse(JSON.parse(await run('improve', '--json')));
  expect(planned.variants).toEqual(['/fr', '/v1']);
  expect([...planned.flagged, ...planned.next].map(({ path }) => path)).toEqual([
    '/guides/install',
    '/guides/node.js',
  ]);
  expect(planned.leftOut.map(({ path, code }) => [path, code])).toEqual([
    ['/gone', 'gone'],
    ['/fr/guides/install', 'variant'],
    ['/v1/guides/install', 'variant'],
  ]);
  expect(planned.flagged[0]?.why).toMatch(/; 3,500 in the seven days to /);

  const shown = await run('improve', '--verbose');
  expect(shown).toContain(
    'Translations and versions, as guessed from the addresses (improve.variants): /fr and /v1.',
  );
  expect(shown).toMatch(
    /files and system addresses, such as \/404, \/robots\.txt and \/favicon\.ico, with 22,127 views .+ Files for AI: \/llms\.txt \(7 human, 1,750 AI\)\./,
  );

  const refused = await end('improve', '--apply', '/robots.txt', '/fr/guides/install');
  expect([refused.code, refused.stdout.split('\n')]).toEqual([
    1,
    [
      '/robots.txt: no job: it is a file or a system address, not a page',
      '/fr/guides/install: no job: translation or version of /guides/install, which has more views',
      '',
    ],
  ]);

  const weekly = await run('report', 'weekly', '--format', 'text');
  const mostRead = /MOST READ\n[^\n]*\n([^]*?)\n\n/.exec(weekly)?.[1] ?? '';
  expect([...mostRead.matchAll(/^(\/\S+):/gm)].map(([, path]) => path).toSorted()).toEqual([
    '/fr/guides/install',
    '/gone',
    '/guides/install',
    '/guides/node.js',
    '/v1/guides/install',
  ]);
  expect(weekly).toContain('22,127 more views were of files and system addresses');
});
