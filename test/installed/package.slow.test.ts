import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { cp, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { endedWith, KEY, platformOf, replaceIn, workspaceOf } from '../commands/workspace.js';
import { startMailServer } from '../mail/mail-server.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { mcpClient } from '../web/mcp-client.js';
import { commandsBelow, TRIES, tryCommand } from './commands.js';
import { install, type Installed, ROOT, run } from './install.js';
import { certificateFor, proxyWithLogin, serveSecurely } from './network.js';

/** What people install and rely on, each tried once. */
describe('the package', () => {
  let installed: Installed;
  beforeAll(async () => {
    installed = await install();
  });

  it('contains the files that the help, messages and generated files mention', async () => {
    const names = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) =>
      name.endsWith('.ts'),
    );
    const texts = await Promise.all(names.map((name) => readFile(join(ROOT, 'src', name), 'utf8')));
    const cited = new Set(
      texts.flatMap((text) => text.match(/\b(?:docs|deploy)\/[\w./-]+\.(?:md|yaml|yml|py)\b/g) ?? []),
    );
    expect(cited.size).toBeGreaterThan(3);
    // It is not in a public registry, so npx would run a package that someone else registered under the name.
    expect(texts.filter((text) => text.includes('npx readership'))).toEqual([]);
    expect([...cited].filter((name) => !installed.files.has(name))).toEqual([]);
  });

  it('contains its documents, with everything they link to', async () => {
    const names = [...installed.files].filter((name) => name.endsWith('.md'));
    expect(names).toEqual(expect.arrayContaining(['README.md', 'CONTRIBUTING.md', 'docs/backup.md']));
    for (const name of names)
      for (const [, link = ''] of (await readFile(join(ROOT, name), 'utf8')).matchAll(
        /\]\((?!https?:|#)([^)#]+)/g,
      )) {
        const target = join(dirname(name), link).replace(/\/$/, '');
        const isThere = [...installed.files].some((path) => path === target || path.startsWith(`${target}/`));
        expect(isThere, `${name} links to ${link}`).toBe(true);
      }
  });

  it('brings nothing but packages with native parts: everything else is bundled', async () => {
    const { home } = installed;
    const packages = await readdir(join(home, 'lib/node_modules/readership/node_modules'));
    expect(packages.filter((name) => !name.startsWith('.')).sort()).toEqual([
      '@css-inline',
      '@duckdb',
      '@photostructure',
      '@resvg',
      'detect-libc',
      'node-addon-api',
      'node-gyp-build',
    ]);
  });

  it('installs from a clone without development dependencies, and says why it was not built', async () => {
    const clone = await tempDir();
    for (const name of ['package.json', 'package-lock.json', 'esbuild.config.js'])
      await cp(join(ROOT, name), join(clone, name));
    const options = ['--prefer-offline', '--no-audit', '--no-fund'];
    const env = { ...process.env, NODE_ENV: 'production' };
    const { stderr } = await run('npm', ['ci', ...options], { cwd: clone, env });
    expect(stderr).toMatch(/was not built: .*NODE_ENV=production.*\n.*npm ci --include=dev/);
    // Packages bring their binaries, and package.json says that their scripts are not meant to run.
    expect(stderr).not.toContain('install scripts');
  });

  it('has a help and a try for every command, and each works in an empty directory', async () => {
    const commands = await commandsBelow(installed);
    expect(Object.keys(TRIES).sort()).toEqual(commands.sort());
    const cwd = await tempDir();
    for (const [name, one] of Object.entries(TRIES)) await tryCommand(installed, name, one, { cwd });
  });
  describe('in a company', () => {
    /** A platform that only a proxy and a private authority lead to, and a workspace for it. */
    const company = async () => {
      const platform = await platformOf(12, 40);
      const identity = await certificateFor(await tempDir(), 'platform.test', 'localhost');
      const port = await serveSecurely(identity, Number(new URL(platform.baseUrl).port));
      const proxy = await proxyWithLogin('ann:p@ss', port);
      const cwd = await workspaceOf({ baseUrl: 'https://platform.test', projectId: 'prj_1' });
      const env = { READERSHIP_API_KEY: KEY, NODE_EXTRA_CA_CERTS: identity.file };
      const exportWith = (more: Record<string, string>) =>
        installed.call(['export'], { cwd, env: { ...env, ...more } });
      return { port, proxy, cwd, exportWith };
    };

    it('goes through a proxy with a login, trusts its authority, and says what is missing otherwise', async () => {
      const { port, proxy, cwd, exportWith } = await company();
      const HTTPS_PROXY = `http://ann:p%40ss@${proxy.address}`;
      const withoutLogin = await exportWith({ HTTPS_PROXY: `http://${proxy.address}` });
      expect(withoutLogin.code).toBe(75);
      expect(withoutLogin.stderr).toContain('the proxy asks for a login: add it to HTTPS_PROXY');
      const untrusting = await exportWith({ HTTPS_PROXY, NODE_EXTRA_CA_CERTS: '' });
      expect(untrusting.stderr).toMatch(/self-signed certificate.*NODE_EXTRA_CA_CERTS/);
      const bypassing = await exportWith({ HTTPS_PROXY, NO_PROXY: '*' });
      expect(bypassing.stderr).toContain('there is no host named platform.test');
      const asked = proxy.asked.length;
      expect(proxy.asked).toContain('platform.test:443');
      endedWith(0, await exportWith({ https_proxy: '', HTTPS_PROXY }));
      expect(proxy.asked.length).toBeGreaterThan(asked);
      await replaceIn(cwd, 'https://platform.test', `https://localhost:${port}`);
      endedWith(0, await exportWith({ HTTPS_PROXY }));
    });
  });

  it('emails with STARTTLS and a login, posts to Slack, writes a dataset, runs a command, writes a spreadsheet and answers assistants', async () => {
    const platform = await platformOf(20, 40);
    const identity = await certificateFor(await tempDir(), 'localhost');
    const logins: string[] = [];
    const mails = await startMailServer({
      key: identity.key,
      cert: identity.cert,
      disabledCommands: [],
      authOptional: false,
      onAuth: ({ username = '', password }, session, done) => {
        logins.push(`${username}:${password} ${session.secure ? 'encrypted' : 'in the clear'}`);
        done(null, { user: username });
      },
    });
    const slack = await serve((_, response) => response.end('ok'));
    const cwd = await workspaceOf(
      { baseUrl: platform.baseUrl, projectId: 'prj_1' },
      `mail: { from: docs@example.com }
channels: { chat: { kind: slack } }
reports: { weekly: { to: [ann@example.com, chat] } }
publish: { parquet: dataset, then: cp -r dataset copy }
`,
    );
    const env = {
      READERSHIP_API_KEY: KEY,
      READERSHIP_SMTP_URL: `smtp://ann:long-p%40ssword@localhost:${mails.port}`,
      NODE_EXTRA_CA_CERTS: identity.file,
      READERSHIP_CHANNEL_CHAT: `${slack.baseUrl}/services/secret`,
    };
    await installed.output(['export'], { cwd, env });
    expect(await readdir(join(cwd, 'copy/days/project=prj_1'))).toContain('days.parquet');
    const sent = await installed.output(['report', 'send', 'weekly'], { cwd, env });
    expect(sent).toMatch(/to ann@example\.com: sent .*\n.*to chat: sent/);
    expect(logins).toEqual(['ann:long-p@ssword encrypted']);
    expect(mails.accepted.get('ann@example.com')).toHaveLength(1);
    expect(slack.seen.map(({ url }) => url.pathname)).toEqual(['/services/secret']);

    await installed.output(['sql', 'FROM site_weeks ORDER BY week', '--output', 'weeks.xlsx'], { cwd });
    expect((await readFile(join(cwd, 'weeks.xlsx'))).subarray(0, 2).toString()).toBe('PK');
    const transport = new StdioClientTransport({
      ...{ command: installed.program, args: ['mcp'], cwd, env: installed.environment, stderr: 'pipe' },
    });
    const { ask } = await mcpClient(cwd, transport);
    expect(await ask('query', { sql: 'SELECT 6 * 7 AS answer' })).toContain('42');
  });
});
