import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../temp-dir.js';
import { ROOT, run } from './install.js';

/** A clone with these files. */
async function cloneWith(...names: string[]): Promise<string> {
  const clone = await tempDir();
  for (const name of ['package.json', 'package-lock.json', 'bin', ...names])
    await cp(join(ROOT, name), join(clone, name), { recursive: true });
  return clone;
}

/** How a command ended, with what it wrote. */
const call = (cwd: string, file: string, ...args: string[]) =>
  run(file, args, { cwd }).then(
    ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
    (error: unknown) => ({ code: 1, text: String(error) }),
  );

describe('a clone that commands are run from', () => {
  it('can be built again while they run: each finds a whole program, and what runs the rest of its own', async () => {
    const clone = await cloneWith('esbuild.config.js', 'src', 'templates', 'reports', 'docs');
    await symlink(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    const build = () => run(process.execPath, ['esbuild.config.js'], { cwd: clone });
    const program = join(clone, 'bin/readership.js');
    await build();
    const [first = ''] = (await readdir(join(clone, 'dist'))).filter((name) => /^[\da-f]{12}$/.test(name));
    const files = await readdir(join(clone, 'dist', first), { recursive: true });

    const building = { isOver: false };
    const ends: Awaited<ReturnType<typeof call>>[] = [];
    const calling = (async () => {
      while (!building.isOver)
        ends.push(await call(clone, process.execPath, program, 'report', 'list', '--sandbox'));
    })();
    const source = join(clone, 'src/commands/report.ts');
    const text = await readFile(source, 'utf8');
    for (const word of ['first', 'second']) {
      await writeFile(source, text.replace('List the built-in reports', `List the ${word} reports`));
      await build();
    }
    building.isOver = true;
    await calling;

    expect(ends.length).toBeGreaterThan(1);
    expect(ends.filter(({ code, text }) => code !== 0 || !text.includes('built in'))).toEqual([]);
    const help = await call(clone, process.execPath, program, 'report', 'list', '--help');
    expect(help.text).toContain('List the second reports');
    expect(await readdir(join(clone, 'dist', first), { recursive: true })).toEqual(files);
    const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--dry-run', '--json'], { cwd: clone });
    expect(stdout).not.toContain(first);
  });

  it('says in one sentence what to run if npm ran no scripts, as a clone and installed', async () => {
    const clone = await cloneWith();
    const home = await tempDir();
    await mkdir(join(home, 'lib'));
    const sentence =
      /^Readership is not built yet, because npm ran no scripts: npm run build --prefix '.+'$/m;
    const started = await call(clone, 'npm', 'start');
    expect(started).toMatchObject({ code: 1, text: expect.stringMatching(sentence) as string });
    expect(started.text).not.toMatch(/\n {4}at /);
    const options = ['--global', '--prefix', home, '--ignore-scripts', '--prefer-offline', '--no-audit'];
    await run('npm', ['install', ...options, '.'], { cwd: clone });
    const called = await call(clone, join(home, 'bin/readership'), 'run', '--sandbox');
    expect(called).toMatchObject({ code: 1, text: expect.stringMatching(sentence) as string });
  });
});
