import type { Command } from 'commander';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { commandLine } from '../../src/commands/program.js';
import { callCli, CLI, runCli } from '../run-cli.js';
import { COMMANDS } from '../secrets/commands.js';
import { tempDir } from '../temp-dir.js';

const printed = async (...command: string[]): Promise<string> => {
  const { code, stdout, stderr } = await callCli([...command, '--help'], { cwd: await tempDir() });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
};

/** What `--help` prints. */
function helpOf(command: Command): string {
  let written = '';
  command.configureOutput({
    writeOut: (part) => {
      written += part;
    },
  });
  command.outputHelp();
  return written;
}

/** Each command, as typed, with what `--help` prints. */
const helps = new Map<string, string>();
const leaves: string[] = [];
const visit = (command: Command, parents: readonly string[]): void => {
  const names = [...parents, command.name()];
  const name = names.slice(1).join(' ');
  helps.set(name, helpOf(command));
  if (command.commands.length === 0) leaves.push(name);
  for (const child of command.commands) visit(child, names);
};
beforeAll(async () => {
  visit(await commandLine(() => Promise.reject(new Error('nothing is run'))), []);
});
const help = (command: string): string => helps.get(command) ?? expect.fail();

describe('--help', () => {
  it('of every command says what it does and shows an example', async () => {
    for (const [command, text] of helps) {
      expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
      if (command === '') continue;
      const [, example = ''] = /^Examples?:\n([\s\S]+)/m.exec(text) ?? [];
      expect(example, command).toContain(`readership ${command}`);
    }
    // Also add a new command to the tests with marked secrets.
    expect(leaves.sort()).toEqual(Object.keys(COMMANDS).sort());
    for (const command of ['', 'jobs', 'jobs message'])
      expect(await printed(...command.split(' ').filter(Boolean))).toBe(help(command));
  });

  it('of a report is that of rendering it, whether or not "show" is left out', async () => {
    for (const args of [['weekly'], ['show', 'weekly'], ['weekly', '--open'], ['show']])
      expect(await printed('report', ...args)).toBe(help('report show'));
    expect(await printed('report')).toBe(help('report'));
  });

  it.each([
    ['jobs message', 'jobs message'],
    ['report show', 'report show'],
    ['report weekly', 'report show'],
  ])('of %s is also what `help` shows', async (names, command) => {
    const { stdout } = await callCli(['help', ...names.split(' ')], { cwd: await tempDir() });
    expect(stdout).toBe(help(command));
  });

  const UNKNOWN = [
    ['jobs shwo', 'show'],
    ['stat', 'status'],
    ['mail', 'report send'],
    ['query', 'sql'],
    ['exprot', 'export'],
  ].flatMap(([typed = '', meant]) => {
    const words = `unknown command '${typed.split(' ').at(-1)}'\n(Did you mean ${meant}?)`;
    return [typed, `help ${typed}`].map((line) => [line, words] as const);
  });
  it.each<readonly [line: string, words: string]>([
    ...UNKNOWN,
    ['jobs --json show 3', "unexpected argument 'show'"],
    ['jobs list 3', "unexpected argument '3'"],
  ])('is suggested for `%s`, with the error: %s', async (line, words) => {
    expect(await runCli(line.split(' '), { cwd: await tempDir() })).toMatchObject({
      code: 2,
      stderr: `error: ${words}\nFor help, add --help.\n`,
    });
  });

  it('is what a pipe gets without a command, and a terminal five commands', async () => {
    const cwd = await tempDir();
    const piped = await runCli([], { cwd });
    expect(piped).toMatchObject({ code: 2, stdout: '', stderr: help('') });
    const command = `${process.execPath} ${CLI}`;
    const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], { cwd });
    const shown = [...stdout.matchAll(/^ {2}readership (\w+)/gm)].map(([, name]) => name);
    expect(shown).toEqual(['init', 'run', 'report', 'status', 'sql']);
    expect(stdout).toContain('All commands: readership --help');
  });

  it('names the exit codes and the environment', () => {
    const text = help('');
    expect(text).toMatch(
      /0 done · 1 failed · 2 usage or configuration · 75 try again later ·\n130 interrupted \(143 by SIGTERM, 129 by SIGHUP\)/,
    );
    for (const name of ['READERSHIP_API_KEY', 'NO_COLOR']) expect(text).toContain(name);
  });

  it.each(['run', 'start', 'report send', 'doctor'])('of %s names the key and the mail server', (command) => {
    expect(help(command)).toMatch(/READERSHIP_API_KEY[^]+READERSHIP_SMTP_URL/);
  });

  it.each(['export', 'audit', 'improve', 'jobs poll', 'jobs message', 'jobs settle'])(
    'of %s, which sends no email, names only the key',
    (command) => {
      const text = help(command);
      expect(text).toContain('READERSHIP_API_KEY');
      expect(text).not.toContain('READERSHIP_SMTP_URL');
    },
  );
});
