import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLI, runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

const SCRIPT = '/usr/bin/script';

/** Runs a command in a new terminal and closes the terminal once `seen` is shown; returns the exit code. */
async function exitCodeWithoutTerminal(cwd: string, command: string, seen: RegExp): Promise<string> {
  // The shell on the terminal dies of SIGHUP; the one inside it ignores the signal and notes the code.
  await writeFile(
    join(cwd, 'noting'),
    `trap '' HUP\n'${process.execPath}' '${CLI}' ${command}\necho $? > code`,
  );
  const terminal = spawn(SCRIPT, ['-qec', 'sh noting; true', '/dev/null'], { cwd });
  const closed = once(terminal, 'exit');
  let shown = '';
  for await (const text of terminal.stdout.setEncoding('utf8')) {
    shown += String(text);
    if (seen.test(shown)) break;
  }
  terminal.kill('SIGKILL');
  await closed;
  const noted = () => readFile(join(cwd, 'code'), 'utf8').catch(() => '');
  await expect.poll(noted, { timeout: 100_000 }).toMatch(/\d\n/);
  return (await noted()).trim();
}

describe.skipIf(!existsSync(SCRIPT))('a terminal that closes (skipped where script(1) is missing)', () => {
  it.each([
    ['sandbox --port 0', /Ctrl-C/, '129'],
    ['start --sandbox', /started/, '0'],
    ['sql --sandbox', /sql> /, '129'],
  ])('lets `%s` end cleanly', async (command, seen, code) => {
    const cwd = await tempDir();
    if (command.startsWith('sql')) await runCli(['export', '--sandbox'], { cwd });
    expect(await exitCodeWithoutTerminal(cwd, command, seen)).toBe(code);
  });
});
