import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { openInBrowser } from '../../src/terminal/person.js';
import { Output } from '../../src/terminal/output.js';
import { tempDir } from '../temp-dir.js';

it.skipIf(process.platform !== 'linux').each([
  ['cannot open it', 'exit 3', 'xdg-open could not open the browser. Open this yourself: page.html\n'],
  ['is not there', undefined, 'Cannot open the browser without xdg-open. Open this yourself: page.html\n'],
])('--open says so when the opener %s', async (_, script, words) => {
  const directory = await tempDir();
  if (script !== undefined) {
    await writeFile(join(directory, 'xdg-open'), `#!/bin/sh\n${script}\n`);
    await chmod(join(directory, 'xdg-open'), 0o755);
  }
  vi.stubEnv('PATH', directory);
  const notes = new PassThrough({ encoding: 'utf8' });
  openInBrowser('page.html', { output: new Output(new PassThrough(), notes, false) });
  const [said] = (await notes.take(1).toArray()) as string[];
  expect(said).toBe(words);
});
