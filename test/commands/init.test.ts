import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { jsonSchemaOf } from '../../src/config/problems.js';
import { settingsSchema } from '../../src/config/schema.js';
import { runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

it('the JSON Schema for editors is that of the settings: npx vitest run init -u', async () => {
  const file = '../../templates/workspace/readership.schema.json';
  await expect(`${JSON.stringify(jsonSchemaOf(settingsSchema), null, 2)}\n`).toMatchFileSnapshot(file);
});

describe('readership init', () => {
  it('writes a valid configuration and an example environment file', async () => {
    const cwd = await tempDir();
    expect(await runCli(['init'], { cwd })).toMatchObject({ code: 0, stderr: '' });
    expect((await readdir(cwd)).sort()).toEqual(['.env.example', 'readership.yaml']);
    const [first = ''] = (await readFile(join(cwd, 'readership.yaml'), 'utf8')).split('\n');
    const schema = fileURLToPath(first.replace('# yaml-language-server: $schema=', ''));
    expect(JSON.parse(await readFile(schema, 'utf8'))).toEqual(jsonSchemaOf(settingsSchema));
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
    expect(result.stderr).toMatch(new RegExp(`${name} already exists; nothing was written`));
    expect(await readFile(join(cwd, name), 'utf8')).toBe('mine');
    expect(await readdir(cwd)).toEqual([name]);
  });
});
