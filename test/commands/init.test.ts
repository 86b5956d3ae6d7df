import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

describe('readership init', () => {
  it('writes a valid configuration and an example environment file', async () => {
    const cwd = await tempDir();
    expect(await runCli(['init'], { cwd })).toMatchObject({ code: 0, stderr: '' });
    expect((await readdir(cwd)).sort()).toEqual(['.env.example', 'readership.yaml']);
    // The only thing missing is the key.
    const next = await runCli(['export'], { cwd });
    expect(next).toMatchObject({ code: 2 });
    expect(next.stderr).toContain('No API key for project prj_123');
  });

  it.each(['readership.yaml', '.env.example'])('never overwrites %s', async (name) => {
    const cwd = await tempDir();
    await writeFile(join(cwd, name), 'mine');
    const result = await runCli(['init'], { cwd });
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toMatch(new RegExp(`${name} is there already; nothing was overwritten`));
    expect(await readFile(join(cwd, name), 'utf8')).toBe('mine');
    expect(await readdir(cwd)).toEqual([name]);
  });
});
