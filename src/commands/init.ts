import type { Command } from 'commander';
import { copyFile, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONFIG_FILE } from '../config/load.js';
import { ConfigurationError, messageOf } from '../errors.js';
import type { ExitCode } from './exit-code.js';
import type { Act, Runtime } from './runtime.js';

const EXAMPLES = fileURLToPath(new URL('../../templates/workspace/', import.meta.url));

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

async function init({ workingDirectory, output }: Runtime): Promise<ExitCode> {
  await write('readership.yaml', join(workingDirectory, CONFIG_FILE));
  await write('env.example', join(workingDirectory, '.env.example'));
  output.data(
    [
      `Wrote ${CONFIG_FILE} and .env.example. Next:`,
      `  1. Set baseUrl and the project's id in ${CONFIG_FILE}.`,
      '  2. Copy .env.example to .env, and put your API key into it.',
      '  3. readership export',
    ].join('\n'),
  );
  return 0;
}

async function write(example: string, target: string): Promise<void> {
  try {
    await copyFile(join(EXAMPLES, example), target, constants.COPYFILE_EXCL);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')
      throw new ConfigurationError(
        `${target} is there already; nothing was overwritten. Move it away first.`,
        { cause },
      );
    throw new ConfigurationError(`Cannot write ${target}: ${messageOf(cause)}`, { cause });
  }
}
