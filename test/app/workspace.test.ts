import { execFile } from 'node:child_process';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readWorkspace } from '../../src/app/workspace.js';
import { Output } from '../../src/terminal/output.js';
import { tempDir } from '../temp-dir.js';

it('reads .env once, so that it can be a pipe from a password manager', async () => {
  const workingDirectory = await tempDir();
  const dotEnv = join(workingDirectory, '.env');
  await writeFile(
    join(workingDirectory, 'readership.yaml'),
    'baseUrl: https://platform.example.com\nprojects: [{ id: prj_1 }]\n',
  );
  await promisify(execFile)('mkfifo', [dotEnv]);
  const reading = readWorkspace(
    {},
    {
      ...{ workingDirectory, environment: {}, now: () => new Date() },
      signal: new AbortController().signal,
      output: new Output(new PassThrough(), new PassThrough(), false),
    },
  );
  const pipe = await open(dotEnv, 'w');
  await pipe.writeFile('READERSHIP_API_KEY=from-a-pipe\n');
  await pipe.close();
  expect((await reading).configuration?.environment).toEqual({ READERSHIP_API_KEY: 'from-a-pipe' });
});
