#!/usr/bin/env node
// The build is not in the repository, and npm can be told to run no scripts, which would make it.
import { existsSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath, URL } from 'node:url';

const program = new URL('../dist/cli.js', import.meta.url);
if (existsSync(program)) await import(program.href);
else {
  const directory = fileURLToPath(new URL('..', import.meta.url));
  process.stderr.write(
    `Readership is not built yet, because npm ran no scripts: npm run build --prefix '${directory}'\n`,
  );
  process.exitCode = 1;
}
