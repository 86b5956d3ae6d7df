import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { PageViews } from '../../src/api/schema.js';
import { addDays, type Day, day } from '../../src/day.js';
import { pageOf } from '../../src/page.js';
import { platformWorkspace } from '../commands/workspace.js';
import { servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';
import { agentsWith } from './platform-agents.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const FIRST_DAY = addDays(day('2026-11-16'), -7 * 9);
const LAST_DAY = day('2026-11-17');

const LONG = `/${'a'.repeat(150)}`;
/** As a stranger may request them, each often enough for a job. */
const ODD = [
  '/index',
  '//',
  '/',
  '/.md',
  '/a/index.html/',
  '/a',
  '/%2e%2e',
  '/../../etc/passwd.md',
  '/page.md.md',
  '/page',
  '/README.md',
  '/ü/日本/🦆/',
  '/UPPER.MD',
  '/upper/INDEX.HTML',
  '/docs/index.mdx',
  '/docs?utm=1',
  '/docs?utm=2#part',
  '/x',
  '/x/index',
  '/index/index/index',
  '/<script>alert(1)</script>/',
  "/o'reilly.md",
  '/"quoted"/',
  '/a b/',
  '/{{prompt}}.md',
  '/*',
  '/[x]/',
  '/-',
  '/.html',
  '/…/',
  `/${'long/'.repeat(2_000)}`,
  `${LONG}.md`,
];
const PLAIN = ['/', '/a', '/page', '/README', '/docs', '/x', '/UPPER.MD', '/upper/INDEX.HTML', LONG];

/** Each is a command of its own. */
const SOME = ODD.filter((_, index) => index % 3 === 0);

const rowsOf = (at: Day): PageViews[] =>
  at < FIRST_DAY || at > LAST_DAY
    ? []
    : ODD.map((path, index) => ({ path, human: 100 + index, ai: 50, total: 150 + index }));

describe('a site whose addresses are odd', () => {
  let run: (...args: string[]) => ReturnType<typeof callCli>;
  let created: string[];
  beforeAll(async () => {
    const { created: jobs, answer } = agentsWith([]);
    created = jobs;
    const platform = await servePlatform({ now: () => NOW, rowsOf, agents: answer });
    const settings = 'improve: { mode: apply, maxJobsPerWeek: 50 }\n';
    const cwd = await platformWorkspace(platform, settings);
    run = (...args) => callCli(args, { cwd, env: { READERSHIP_API_KEY: 'adm_key_1' }, now: () => NOW });
    expect(await run('export')).toMatchObject({ code: 0 });
  }, 120_000);
  const query = async (sql: string) =>
    z
      .array(z.record(z.string(), z.unknown()))
      .parse(JSON.parse((await run('sql', sql, '--format', 'json')).stdout));

  it('keeps each path as it was sent, and the exact sums by page', async () => {
    const stored = await query('SELECT DISTINCT path, page FROM page_views');
    expect(new Map(stored.map(({ path, page }) => [path, page]))).toEqual(
      new Map(ODD.map((path) => [path, pageOf(path)])),
    );
    const [sums] = await query(
      `SELECT (SELECT sum(human + ai) FROM page_views) = (SELECT sum(human + ai) FROM top_pages('${FIRST_DAY}', '${LAST_DAY}')) AS are_equal`,
    );
    expect(sums).toEqual({ are_equal: true });
    expect(await run('audit')).toMatchObject({ code: 0 });
  });

  it('has a history and addresses for each', async () => {
    for (const path of SOME) {
      const quoted = `'${path.replaceAll("'", "''")}'`;
      const [found] = await query(
        `SELECT (SELECT count(*) FROM page_history(${quoted})) AS days, (SELECT list(path) FROM page_addresses(${quoted}, '${FIRST_DAY}', '${LAST_DAY}')) AS addresses`,
      );
      expect(Number(found?.['days']), path.slice(0, 50)).toBeGreaterThan(60);
      expect(JSON.stringify(found?.['addresses'])).toContain(JSON.stringify(path).slice(1, -1));
    }
  });

  it('renders both reports, and creates one job a plain page', async () => {
    for (const format of ['html', 'text', 'json'])
      for (const report of ['weekly', 'improve']) {
        const { code, stdout } = await run('report', report, '--format', format);
        expect(code).toBe(0);
        if (format === 'html') expect(stdout).not.toContain('<script>alert(1)');
      }
    const { code, stderr } = await run('improve', '--apply');
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('bug in Readership')]);
    expect(created.sort()).toEqual([...PLAIN].sort());
    for (const path of SOME) {
      const again = await run('improve', '--apply', path);
      expect(again.stdout + again.stderr, path.slice(0, 50)).not.toContain('bug in Readership');
    }
    expect(created).toHaveLength(PLAIN.length);
  });

  it('skips and unskips by any of them', async () => {
    for (const path of ['/x/index.html', '//x', '/x?y', '/x/'])
      for (const what of ['--skip', '--unskip'])
        expect(await run('improve', what, path), `${what} ${path}`).toMatchObject({ code: 0 });
  });
});
