import type { Command } from 'commander';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONFIG_FILE } from '../config/load.js';
import type { Act } from './options.js';
import type { Runtime } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf } from '../errors.js';

const EXAMPLES = fileURLToPath(new URL('../../templates/workspace/', import.meta.url));

/** By which editors complete and check the configuration: that of the installed version. */
const SCHEMA = new URL('../../templates/workspace/readership.schema.json', import.meta.url).href;

export function declareInit(program: Command, act: Act): void {
  program
    .command('init')
    .summary('write a commented readership.yaml and .env.example')
    .description(
      `Writes a commented ${CONFIG_FILE} and .env.example into this directory. Never overwrites a file.`,
    )
    .addHelpText('after', '\nExample:\n  mkdir acme-readership && cd acme-readership && readership init')
    .action(() => act(init));
}

interface Example {
  readonly name: string;
  readonly target: string;
  readonly mode: number;
}

async function init({ workingDirectory, output }: Runtime): Promise<ExitCode> {
  const examples = [
    { name: 'readership.yaml', target: join(workingDirectory, CONFIG_FILE), mode: 0o666 },
    // So that a copy of it, which will hold the key, is readable by its owner only.
    { name: 'env.example', target: join(workingDirectory, '.env.example'), mode: 0o600 },
  ];
  // All or nothing: if one file exists, none is written.
  for (const { target } of examples) if (existsSync(target)) throw inTheWay(target);
  for (const example of examples) await write(example);
  output.data(
    [
      `Wrote ${CONFIG_FILE} and .env.example. Next:`,
      `  1. Set baseUrl and the project's id in ${CONFIG_FILE}.`,
      '  2. Copy .env.example to .env, and add your API key.',
      '  3. readership export --plan   (shows what it will request; sends nothing)',
      '  4. readership export',
    ].join('\n'),
  );
  return 0;
}

async function write({ name, target, mode }: Example): Promise<void> {
  const text = (await readFile(join(EXAMPLES, name), 'utf8')).replace('$SCHEMA', SCHEMA);
  try {
    await writeFile(target, text, { flag: 'wx', mode });
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') throw inTheWay(target);
    throw new ConfigurationError(`Cannot write ${target}: ${messageOf(cause)}`, { cause });
  }
}

const inTheWay = (target: string): ConfigurationError =>
  new ConfigurationError(`${target} already exists; nothing was written. Move it away first.`);
