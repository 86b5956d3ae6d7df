import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadSettings, readEnvironment } from '../../src/config/load.js';
import { jsonSchemaOf } from '../../src/config/problems.js';
import { settingsSchema } from '../../src/config/schema.js';
import { startMailServer } from '../mail/mail-server.js';
import { callCli, CLI } from '../run-cli.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { endedWith, env, KEY, replaceIn, serveSandbox } from './workspace.js';

const SCRIPT = '/usr/bin/script';

describe('readership init', () => {
  it('writes a valid configuration of ten lines and an environment file', async () => {
    const cwd = await tempDir();
    expect(await callCli(['init'], { cwd })).toMatchObject({ code: 0, stderr: '' });
    expect((await readdir(cwd)).sort()).toEqual(['.env', '.gitignore', 'readership.yaml']);
    expect((await stat(join(cwd, '.env'))).mode & 0o777).toBe(0o600);
    const partly = await callCli(['init', '--url', 'https://a.example'], { cwd: await tempDir() });
    expect(partly.stdout).toMatch(
      / {2}- set the project's ID in readership.yaml\n {2}- add READERSHIP_API_KEY/,
    );
    expect(await readFile(join(cwd, '.gitignore'), 'utf8')).toBe('.env\n');
    const lines = (await readFile(join(cwd, 'readership.yaml'), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(10);
    const [first = '', second = ''] = lines;
    expect(existsSync(second.replace('# All settings: ', ''))).toBe(true);
    // What was not answered is valid once its comment is a line.
    const filledIn = lines.join('\n').replaceAll(/^# (?=\w+:)/gm, '');
    expect(settingsSchema.parse(parse(filledIn)).reports.audiences).toHaveProperty('weekly');
    const schema = fileURLToPath(first.replace('# yaml-language-server: $schema=', ''));
    expect(JSON.parse(await readFile(schema, 'utf8'))).toEqual(jsonSchemaOf(settingsSchema));
    // The only thing missing is the key.
    const next = endedWith(2, await callCli(['export'], { cwd }));
    expect(next.stderr).toContain('No API key for project prj_123');
  });

  it('never overwrites readership.yaml, and adds the key to a .env that lacks it', async () => {
    const cwd = await tempDir();
    const configuration = join(cwd, 'readership.yaml');
    await writeFile(configuration, 'mine');
    const { stdout, stderr } = endedWith(2, await callCli(['init'], { cwd }));
    expect(stdout).toBe('');
    expect(stderr).toContain('readership.yaml already exists; nothing was written');
    expect(await readFile(configuration, 'utf8')).toBe('mine');
    expect(await readdir(cwd)).toEqual(['readership.yaml']);
    await rm(configuration);
    await writeFile(join(cwd, '.env'), 'OTHER=mine');
    endedWith(0, await callCli(['init', '--save-key'], { cwd, env }));
    expect(await readFile(join(cwd, '.env'), 'utf8')).toBe(`OTHER=mine\nREADERSHIP_API_KEY=${KEY}\n`);
    await rm(configuration);
    const server = { ...env, READERSHIP_SMTP_URL: 'smtp://127.0.0.1:1' };
    endedWith(0, await callCli(['init', '--save-key', '--no-check'], { cwd, env: server }));
    expect(await readFile(join(cwd, '.env'), 'utf8')).toContain('\nREADERSHIP_SMTP_URL=smtp://127.0.0.1:1\n');
    await rm(configuration);
    const dead = await callCli(['init', '--email', 'docs@example.com'], { cwd, env: server });
    expect(endedWith(2, dead).stdout).toMatch(/^fail {2}mail server .*127\.0\.0\.1:1/m);
    const none = endedWith(2, await callCli(['init', '--save-key'], { cwd: await tempDir() }));
    expect(none.stderr).toContain('READERSHIP_API_KEY is not set in the environment. Nothing was written.');
  });

  it('writes nothing if it cannot write both files', async () => {
    const cwd = await tempDir();
    await symlink(join(cwd, 'nowhere', '.env'), join(cwd, '.env'));
    const { stderr } = endedWith(2, await callCli(['init'], { cwd }));
    expect(stderr).toMatch(/^Cannot write .+\.env: EEXIST.+ Nothing was written\. Use a directory you can/);
    expect(await readdir(cwd)).toEqual(['.env']);
  });

  it('refuses a mail server of the environment that no command could use, and writes nothing', async () => {
    const cwd = await tempDir();
    const smtp = { ...env, READERSHIP_SMTP_URL: 'smtp://user:short@127.0.0.1:1' };
    const args = ['init', '--url', 'https://platform.example.com', '--project', 'p', '--no-check'];
    const { stderr } = endedWith(2, await callCli(args, { cwd, env: smtp }));
    expect(stderr).toMatch(/has fewer than 8 characters\. .+ Nothing was written\./);
    expect(await readdir(cwd)).toEqual([]);
  });

  it('takes addresses without https://, and offers the sitemap that the site has', async () => {
    const asked: string[] = [];
    const site = await serve((request, response) => {
      asked.push(request.url.pathname);
      const pages = ['/guide', '/fr/guide'].map(
        (path) => `<url><loc>https://docs.example.com${path}</loc></url>`,
      );
      response.end(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${pages.join('')}</urlset>`);
    });
    const { baseUrl, projectId } = await serveSandbox();
    const cwd = await tempDir();
    const platform = ['--url', baseUrl.replace('http://', ''), '--project', projectId];
    const siteUrl = ['--site-url', site.baseUrl.replace('http://', '')];
    const { stdout } = endedWith(0, await callCli(['init', ...platform, ...siteUrl], { cwd, env }));
    expect(asked).toEqual(['/sitemap.xml']);
    expect(stdout).toContain(
      `- to flag only the pages of ${site.baseUrl}/sitemap.xml, remove the # before improve.sitemap\n` +
        '  - translations or versions in the sitemap: /fr. Of a page in several, only the most viewed one gets a job. To change that, set improve.variants\n',
    );
    const load = async () => (await loadSettings(undefined, cwd)).settings;
    expect(await load()).toMatchObject({
      baseUrl,
      projects: [{ siteUrl: site.baseUrl }],
      improve: { mode: 'plan' },
    });
    await replaceIn(cwd, '# sitemap:', 'sitemap:');
    await replaceIn(cwd, '# variants:', 'variants:');
    expect((await load()).improve.variants).toEqual(['/fr']);
    expect((await load()).improve.sitemap).toBe(`${site.baseUrl}/sitemap.xml`);
    const plain = await tempDir();
    await callCli(['init', '--url', 'platform.example.com', '--project', 'p', '--no-check'], { cwd: plain });
    expect((await loadSettings(undefined, plain)).settings.baseUrl).toBe('https://platform.example.com');
  });

  it('asks nothing if the answers are given, and writes nothing if the platform refuses the key', async () => {
    const { baseUrl, projectId } = await serveSandbox();
    const cwd = await tempDir();
    const site = ['--name', 'Acme: Docs', '--site-url', 'https://docs.example.com'];
    const args = ['init', '--url', baseUrl, '--project', projectId, ...site];
    const refused = endedWith(2, await callCli(args, { cwd, env: { READERSHIP_API_KEY: 'wrong-key' } }));
    expect(refused.stdout).toMatch(/^fail {2}page views .+401/m);
    expect(refused.stderr).toContain('Nothing was written');
    for (const [wrong, words] of [
      ['--email=docs', '--email docs: not an email address'],
      [
        '--email=ann@example',
        '--email ann@example: incomplete, because its domain has no dot: write one such as',
      ],
      ['--url=plat form', '--url plat form: enter a full URL'],
    ] as const)
      expect(endedWith(2, await callCli([...args, wrong], { cwd })).stderr).toContain(words);
    expect(await readdir(cwd)).toEqual([]);
    await writeFile(join(cwd, '.gitignore'), 'node_modules');
    const all = [...args, '--email', 'docs@example.com', '--save-key'];
    const { stdout } = endedWith(0, await callCli(all, { cwd, env }));
    expect(stdout).toMatch(
      /^pass {2}page views [^]+ no sitemap was found at https:\/\/docs\.example\.com\/sitemap\.xml: .+\nNext: readership run\n$/m,
    );
    expect(parseEnv(await readFile(join(cwd, '.env'), 'utf8'))['READERSHIP_API_KEY']).toBe(KEY);
    expect(await readFile(join(cwd, '.gitignore'), 'utf8')).toBe('node_modules\n.env\n');
    expect((await readdir(cwd)).sort()).toEqual(['.env', '.gitignore', 'data', 'readership.yaml']);
    const { settings } = await loadSettings(undefined, cwd);
    expect(settings).toMatchObject({
      baseUrl,
      projects: [{ id: projectId, name: 'Acme: Docs', siteUrl: 'https://docs.example.com' }],
      alerts: { to: ['docs@example.com'] },
      reports: { audiences: { weekly: [{ to: ['docs@example.com'] }] } },
      mail: { from: { name: 'Readership', address: 'docs@example.com' } },
    });
  });

  it('counts the requests that tried the platform, so that a cap holds', async () => {
    const sandbox = await serveSandbox();
    const cwd = await tempDir();
    const site = ['--url', sandbox.baseUrl, '--project', sandbox.projectId];
    endedWith(0, await callCli(['init', ...site, '--save-key'], { cwd, env }));
    const sent = Object.values(sandbox.inspect().requests.counts.views ?? {}).reduce((sum, one) => sum + one);
    expect(sent).toBeGreaterThan(1);
    await replaceIn(cwd, /$/, `history: { requestsPerHour: ${sent} }\n`);
    const { stderr } = endedWith(75, await callCli(['export'], { cwd, env }));
    expect(stderr).toContain(`history.requestsPerHour reached: ${sent} of ${sent} used`);
  });
});

describe.skipIf(!existsSync(SCRIPT))('readership init on a terminal (skipped without script(1))', () => {
  /** Answers each question once it is shown, and returns all that the terminal showed. */
  async function onTerminal(
    cwd: string,
    answers: readonly (readonly [question: string, answer: string])[],
    args = 'init',
  ) {
    const { PATH = '' } = process.env;
    const command = `'${process.execPath}' '${CLI}' ${args}`;
    const terminal = spawn(SCRIPT, ['-qec', command, '/dev/null'], {
      cwd,
      env: { PATH, TERM: 'dumb' },
    });
    const ended = once(terminal, 'exit');
    let [shown, seen] = ['', 0];
    const waiting = [...answers];
    for await (const text of terminal.stdout.setEncoding('utf8')) {
      shown += String(text);
      for (const [question, answer] of [...waiting]) {
        const at = shown.indexOf(question, seen);
        if (at < 0) break;
        seen = at + question.length;
        waiting.shift();
        terminal.stdin.write(answer);
      }
    }
    expect(waiting).toEqual([]);
    expect(shown).not.toContain('\u001b');
    return { code: Number((await ended)[0]), shown };
  }

  it('asks until it has valid answers, tries the platform and the mail server, and shows no secret', async () => {
    const { baseUrl, projectId } = await serveSandbox({ apiKey: `${KEY}#'` });
    const mailServer = await startMailServer();
    const smtpUrl = `smtp://127.0.0.1:${mailServer.port}`;
    const cwd = await tempDir();
    const { code, shown } = await onTerminal(cwd, [
      ['API, such as', 'plat form\r'],
      ['enter a full URL', ''],
      ['API, such as', `${baseUrl}\r`],
      ['Project ID', 'prj_other\r'],
      ['not shown [none]: ', 'a-wrong-key\r'],
      // The platform refuses the project and the key, and the address is right.
      ['Correct the answers', ''],
      [`API, such as https://platform.example.com [${baseUrl}]: `, '\r'],
      ['[prj_other]: ', `${projectId}\r`],
      ['[the same]: ', `${KEY}#'\r`],
      ['link to its pages [none]: ', '127.0.0.1:1\r'],
      ['alerts [none]: ', 'docs@example.com\r'],
      ['not shown [none]: ', 'localhost\r'],
      ['is not of the form smtp://', ''],
      ['not shown [none]: ', 'smtp://user:short@127.0.0.1:1\r'],
      ['has fewer than 8 characters', ''],
      ['not shown [none]: ', 'smtp://127.0.0.1:1\r'],
      ['Correct the answers', ''],
      ['[the same]: ', `${smtpUrl}\r`],
    ]);
    expect(code).toBe(0);
    expect(shown).toMatch(
      /fail {2}page views[^]+pass {2}page views[^]+fail {2}mail server[^]+pass {2}mail server[^]+Wrote readership.yaml and .env, and added .env to .gitignore\.[^]+Next: readership run/,
    );
    expect(shown).not.toContain('secret-Key');
    expect(shown).not.toContain(smtpUrl);
    expect((await stat(join(cwd, '.env'))).mode & 0o777).toBe(0o600);
    const { settings } = await loadSettings(undefined, cwd);
    const environment = await readEnvironment(undefined, cwd, {}, String);
    expect(environment).toMatchObject({ READERSHIP_API_KEY: `${KEY}#'`, READERSHIP_SMTP_URL: smtpUrl });
    expect(settings).toMatchObject({
      baseUrl,
      projects: [{ id: projectId, name: '127.0.0.1:1' }],
      mail: { from: { name: 'Readership', address: 'docs@example.com' } },
    });
  });

  it('leaves nothing behind after Ctrl-C, or when the platform fails', async () => {
    const cwd = await tempDir();
    const questions = [
      ['API, such as', 'http://127.0.0.1:1\r'],
      ['Project ID', 'p\r'],
    ] as const;
    expect((await onTerminal(cwd, [...questions, ['not shown [none]: ', 'half a ke\x03']])).code).toBe(130);
    const hashed = await onTerminal(cwd, [['(not shown), ', 'half a pass\x03']], 'serve --hash-password');
    expect(hashed.code).toBe(130);
    const { code, shown } = await onTerminal(cwd, [
      ...questions,
      ['not shown [none]: ', 'a-long-key\r'],
      ['Correct the answers', ''],
      ['API, such as', '\x03'],
    ]);
    expect(code).toBe(130);
    expect(shown).toMatch(/fail {2}server[^]+which writes nothing/);
    expect(await readdir(cwd)).toEqual([]);
  });
});
