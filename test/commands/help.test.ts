import { describe, expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { COMMANDS } from '../secrets/commands.js';
import { tempDir } from '../temp-dir.js';
import { manPage } from './man-page.js';

const help = async (command: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await runCli([...command, '--help'], { cwd: await tempDir() });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return stdout;
};

/** The commands a help text lists, as typed. */
const commandsIn = (text: string, parent: readonly string[]): string[][] =>
  [...(/^Commands:\n((?: .*\n?)+)/m.exec(text)?.[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)]
    .map(([, name]) => name ?? '')
    .filter((name) => name !== 'help')
    .map((name) => [...parent, name]);

describe('--help', () => {
  it('of every command says what it does and shows an example', async () => {
    const commands = commandsIn(await help([]), []);
    expect(commands.length).toBeGreaterThanOrEqual(9);
    const leaves: string[] = [];
    const visit = async (command: string[]): Promise<void> => {
      const text = await help(command);
      const [, example = ''] = /^Examples?:\n([\s\S]+)/m.exec(text) ?? [];
      expect(example, command.join(' ')).toContain(`readership ${command.join(' ')}`);
      const ofIt = commandsIn(text, command);
      // It has an action and a subcommand.
      if (ofIt.length === 0 || command.join(' ') === 'report') leaves.push(command.join(' '));
      await Promise.all(ofIt.map(visit));
    };
    await Promise.all(commands.map(visit));
    // Also add a new command to the tests with marked secrets.
    expect(leaves.sort()).toEqual(Object.keys(COMMANDS).sort());
  }, 120_000);

  it('is also the manual page: npx vitest run help -u', async () => {
    await expect(await manPage()).toMatchFileSnapshot('../../man/readership.1');
  });

  it('is also what `help` shows for a command, and a misspelled one is corrected', async () => {
    const cwd = await tempDir();
    expect((await runCli(['help', 'jobs', 'message'], { cwd })).stdout).toBe(await help(['jobs', 'message']));
    for (const args of [
      ['jobs', 'shwo'],
      ['help', 'jobs', 'shwo'],
    ])
      expect(await runCli(args, { cwd })).toMatchObject({
        code: 2,
        stderr: "error: unknown command 'shwo'\n(Did you mean show?)\nFor help, add --help.\n",
      });
    expect((await runCli(['help', 'report', 'weekly'], { cwd })).stdout).toBe(await help(['report']));
  });

  it('names the exit codes and the environment', async () => {
    const text = await help([]);
    expect(text).toMatch(
      /0 done · 1 failed · 2 usage or configuration · 75 try again later · 130 interrupted \(143 by SIGTERM, 129 by SIGHUP\)/,
    );
    for (const name of ['READERSHIP_API_KEY', 'NO_COLOR']) expect(text).toContain(name);
  });

  it.each(['run', 'start', 'report', 'doctor'])(
    'of %s names the key and the mail server',
    async (command) => {
      expect(await help([command])).toMatch(/READERSHIP_API_KEY[^]+READERSHIP_SMTP_URL/);
    },
  );

  it.each(['export', 'audit', 'improve', 'jobs poll', 'jobs message', 'jobs resolve'])(
    'of %s, which sends no email, names only the key',
    async (command) => {
      const text = await help(command.split(' '));
      expect(text).toContain('READERSHIP_API_KEY');
      expect(text).not.toContain('READERSHIP_SMTP_URL');
    },
  );
});
