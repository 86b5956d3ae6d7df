import { execFile, spawn } from 'node:child_process';
import { cp, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { tempDir } from './temp-dir.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
const packed = z.tuple([
  z.object({
    filename: z.string(),
    integrity: z.string(),
    files: z.array(z.object({ path: z.string() })),
  }),
]);
const manifest = z.object({ files: z.array(z.string()) });

describe('the package', () => {
  let files: Set<string>;
  let home: string;
  const environment = () => ({ PATH: `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`, HOME: home });
  const readership = async (...args: string[]): Promise<string> => {
    return (await run('readership', args, { cwd: home, env: environment() })).stdout;
  };

  beforeAll(async () => {
    const source = await tempDir();
    home = await tempDir();
    const { files: listed } = manifest.parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
    const names = listed.filter((name) => !/^!|^dist$/.test(name)).map((name) => name.replace(/\/\*.*/, ''));
    for (const name of ['package.json', 'README.md', 'LICENSE', ...names])
      await cp(join(ROOT, name), join(source, name), { recursive: true });
    const pack = async () => {
      await run(process.execPath, ['esbuild.config.js', join(source, 'dist')], { cwd: ROOT });
      const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json'], { cwd: source });
      return packed.parse(JSON.parse(stdout));
    };
    const [again] = await pack();
    const [tarball] = await pack();
    expect(again.integrity, 'a build is reproducible byte for byte').toBe(tarball.integrity);
    files = new Set(tarball.files.map(({ path }) => path));
    const options = ['--global', '--prefix', home, '--prefer-offline', '--no-audit', '--no-fund'];
    await run('npm', ['install', ...options, join(source, tarball.filename)], { cwd: home });
  });

  it('contains the files that the help and the generated files mention', async () => {
    const names = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) =>
      name.endsWith('.ts'),
    );
    const texts = await Promise.all([
      ...names.map((name) => readFile(join(ROOT, 'src', name), 'utf8')),
      ...['readership.yaml', 'env.example'].map((name) =>
        readFile(join(ROOT, 'templates/workspace', name), 'utf8'),
      ),
    ]);
    const cited = new Set(
      texts.flatMap((text) => text.match(/\b(?:docs|deploy)\/[\w./-]+\.(?:md|yaml|yml|py)\b/g) ?? []),
    );
    expect(cited.size).toBeGreaterThan(3);
    // It is not in a public registry, so npx would run a package that someone else registered under the name.
    expect(texts.filter((text) => text.includes('npx readership'))).toEqual([]);
    expect([...cited].filter((name) => !files.has(name))).toEqual([]);
  });

  it('contains its documents, with everything they link to', async () => {
    const names = [...files].filter((name) => name.endsWith('.md'));
    expect(names).toEqual(expect.arrayContaining(['README.md', 'CONTRIBUTING.md', 'docs/backup.md']));
    for (const name of names)
      for (const [, link = ''] of (await readFile(join(ROOT, name), 'utf8')).matchAll(
        /\]\((?!https?:|#)([^)#]+)/g,
      )) {
        const target = join(dirname(name), link).replace(/\/$/, '');
        const isThere = [...files].some((path) => path === target || path.startsWith(`${target}/`));
        expect(isThere, `${name} links to ${link}`).toBe(true);
      }
  });

  it('installed in an empty directory, runs on the sandbox, reports, answers SQL and serves the web app', async () => {
    expect(await readership('init')).toContain('Wrote readership.yaml and .env.example, and added');
    const said = await readership('run', '--sandbox');
    const [, query = ''] = /^\s*readership sql --sandbox "(FROM site_weeks .*)"$/m.exec(said) ?? [];
    expect(await readership('sql', '--sandbox', query)).toContain('prj_sandbox');
    expect(await readership('report', 'weekly', '--sandbox', '--format', 'text')).toContain(
      '7 of 7 days loaded',
    );
    expect(said).not.toContain('npx');
    const app = spawn(join(home, 'bin/readership'), ['serve', '--sandbox', '--port', '0'], {
      cwd: home,
      env: environment(),
    });
    for await (const address of app.stdout.setEncoding('utf8')) {
      expect((await fetch(new URL('/healthz', String(address)))).status).toBe(200);
      app.kill();
    }
    // Everything else is bundled.
    const installed = await readdir(join(home, 'lib/node_modules/readership/node_modules'));
    expect(installed.filter((name) => !name.startsWith('.')).sort()).toEqual([
      '@css-inline',
      '@duckdb',
      '@resvg',
      'detect-libc',
    ]);
    expect(await readdir(join(home, 'share/man/man1'))).toEqual(['readership.1']);
  });
});
