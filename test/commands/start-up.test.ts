import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CLI } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { KEY, platformOf, platformWorkspace } from './workspace.js';

const ROOT = join(import.meta.dirname, '../..');
const failed = z.object({ stderr: z.string() });

/** The files of the bundle that a command reads, by what Node.js says of its modules. */
const loaded = async (...args: string[]): Promise<string[]> => loadedIn(await tempDir(), ...args);

async function loadedIn(cwd: string, ...args: string[]): Promise<string[]> {
  const env = { ...process.env, READERSHIP_API_KEY: KEY, NODE_DEBUG: 'esm' };
  const ended = promisify(execFile)(process.execPath, [CLI, ...args], { cwd, env, maxBuffer: 1e8 });
  const { stderr } = await ended.catch((error: unknown) => failed.parse(error));
  return [
    ...new Set([...stderr.matchAll(/\/dist\/((?:\w+\/)?[\w.-]+\.js)/g)].flatMap(([, file]) => file ?? [])),
  ];
}

const text = async (files: readonly string[]): Promise<string> =>
  (await Promise.all(files.map((file) => readFile(join(ROOT, 'dist', file), 'utf8')))).join('\n');

/** Texts in the code of packages that take long to load, and that few commands need. */
const OF_FEW_COMMANDS = {
  undici: 'UND_ERR_CONNECT_TIMEOUT',
  handlebars: 'registerPartial',
  hono: 'Context is not finalized',
  nodemailer: 'MimeNode',
  pino: 'thread-stream',
  'undici, all of it': 'WebSocketStream',
  'string-width': 'RGI_Emoji',
};

describe('a command that starts', () => {
  it('loads no command for the version, and for SQL neither the HTTP client nor the templates', async () => {
    const version = await loaded('--version');
    expect(version).toContain('cli.js');
    expect(version.some((file) => /\/(run|sql|status)-/.test(file))).toBe(false);
    const sql = await text(await loaded('sql', '--sandbox', 'SELECT 1'));
    expect(sql).toContain('run SQL over the whole history');
    expect(sql).not.toContain('UND_ERR_CONNECT_TIMEOUT');
    expect(sql).not.toContain('registerPartial');
  });

  it('loads for the status, a report and an export only what they need', async () => {
    const packagesIn = (code: string) =>
      Object.entries(OF_FEW_COMMANDS).flatMap(([name, part]) => (code.includes(part) ? name : []));
    expect(packagesIn(await text(await loaded('status', '--sandbox')))).toEqual([]);
    expect(packagesIn(await text(await loaded('report', 'weekly', '--sandbox')))).toEqual(['handlebars']);
    expect(packagesIn(await text(await loaded('export', '--config', 'missing.yaml')))).toEqual(['undici']);
  });

  it('loads DuckDB for a run with something to do, and not for the status and jobs after it', async () => {
    const cwd = await platformWorkspace(await platformOf(3, 2));
    const loadsDuckDb = async (...args: string[]) =>
      (await text(await loadedIn(cwd, ...args))).includes('DuckDBInstanceCache');
    expect(await loadsDuckDb('run')).toBe(true);
    expect(await loadsDuckDb('status')).toBe(false);
    expect(await loadsDuckDb('jobs')).toBe(false);
  });

  it('shows where in the source a bug was thrown', async () => {
    // `process.cwd` is called right at the start.
    const broken = `data:text/javascript,process.cwd = () => { throw new TypeError('broken') }`;
    const ended = promisify(execFile)(process.execPath, ['--import', broken, CLI, 'status'], { cwd: ROOT });
    await expect(ended).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/TypeError: broken[^]* src\/main\.ts:\d+:\d+/) as string,
    });
  });

  it('refuses an older Node.js in one sentence, before it loads anything that would fail there', async () => {
    const { engines } = z
      .object({ engines: z.object({ node: z.string() }) })
      .parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
    const [, oldest = ''] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? [];
    const on = (version: string) => {
      const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`;
      const args = ['--import', `data:text/javascript,${pretend}`, CLI, '--version'];
      return promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_DEBUG: '' } });
    };
    await expect(on(`${oldest}.0`)).resolves.toMatchObject({ stderr: '' });
    for (const version of ['18.20.8', '20.18.3'])
      await expect(on(version)).rejects.toMatchObject({
        code: 2,
        stdout: '',
        stderr: `Readership needs Node.js ${oldest} or later, and this is ${version}. Install a newer version: https://nodejs.org\n`,
      });
  });
});
