import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { callCli, runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

/** As bash calls a completion: the words before the cursor, the last of which is incomplete. */
const COMPLETE =
  'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _readership; printf "%s " "${COMPREPLY[@]}"';

it('bash completes commands, options and their values, each where it is allowed', async () => {
  const cwd = await tempDir();
  const { stdout: script } = await runCli(['completion', 'bash'], { cwd });
  await writeFile(join(cwd, 'script'), script);
  for (const [words, expected] of [
    [['jo'], 'jobs'],
    [['jobs', 'sh'], 'show'],
    [['--sandbox', 'jobs', 'show', '--j'], '--json'],
    [['improve', '--jso'], '--json'],
    [['sql', '--format', 'p'], 'parquet'],
    [['sql', '--output', ''], ''],
    [['export', '--unskip'], ''],
  ] as const) {
    const args = ['-c', COMPLETE, 'bash', join(cwd, 'script'), 'readership', ...words];
    expect((await promisify(execFile)('bash', args)).stdout.trim(), words.join(' ')).toBe(expected);
  }
});

it('fish and zsh get their own scripts; other shells are rejected', async () => {
  const cwd = await tempDir();
  expect((await callCli(['completion', 'fish'], { cwd })).stdout).toMatch(
    /\ncomplete -c readership -f -n '__fish_seen_subcommand_from jobs; and not .+' -a show -d 'show a job/,
  );
  expect((await callCli(['completion', 'zsh'], { cwd })).stdout).toMatch(
    /^autoload -Uz compinit bashcompinit/,
  );
  expect((await callCli(['completion', 'tcsh'], { cwd })).code).toBe(2);
});
