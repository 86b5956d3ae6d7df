import { once } from 'node:events';
import { expect } from 'vitest';
import type { Installed, InstalledOptions } from './install.js';

/** A command as people type it, and what it shows if it works; commands that go on are stopped then. */
interface Try {
  readonly args: readonly string[];
  readonly shows: RegExp;
  readonly code?: number;
  readonly goesOn?: true;
}

const SANDBOX = '--sandbox';

/** One try of each command, in an order in which each finds what it needs. */
export const TRIES: Readonly<Record<string, Try>> = {
  init: { args: ['--url', 'https://platform.test', '--project', 'prj_1'], shows: /Wrote readership\.yaml/ },
  run: { args: [SANDBOX], shows: /new days of/ },
  export: { args: [SANDBOX], shows: /no new days; \d days? read again/ },
  audit: { args: [SANDBOX], shows: /no differences/ },
  sql: { args: [SANDBOX, 'SELECT 6 * 7 AS answer'], shows: /^answer\n42$/m },
  status: { args: [SANDBOX], shows: /history +.+, \d+ days\n/ },
  doctor: { args: [SANDBOX], shows: /pass {2}history/ },
  'report show': { args: ['weekly', SANDBOX, '--format', 'text'], shows: /7 of 7 days loaded/ },
  'report list': { args: [SANDBOX], shows: /^weekly .*built in$/m },
  'report send': { args: ['weekly', SANDBOX], shows: /: written to data\/sandbox\/outbox/ },
  'report resolve': {
    args: ['weekly', SANDBOX, '--period', '2026-W01', '--delivered', 'ann@example.com'],
    shows: /there is nothing to resolve/,
    code: 2,
  },
  'report new': { args: ['own'], shows: /reports\/own\/report\.yaml/ },
  improve: { args: [SANDBOX], shows: /no page would get a job now|pages? would get/ },
  'jobs list': { args: [SANDBOX], shows: /^job +state +page/m },
  'jobs show': { args: ['1', SANDBOX], shows: /^Prompt$/m },
  'jobs poll': { args: [SANDBOX], shows: /./ },
  'jobs message': { args: ['1', 'Mention the rate limits as well.', SANDBOX], shows: /sent/ },
  'jobs settle': { args: ['1', '--merged', SANDBOX], shows: /merged/ },
  mcp: { args: [SANDBOX], shows: /^$/ },
  publish: { args: [SANDBOX, '--parquet', 'dataset'], shows: /^dataset {2}\d+ files/m },
  adopt: { args: [SANDBOX], shows: /now sends from/ },
  restore: { args: [SANDBOX], shows: /nothing to restore/ },
  start: { args: [SANDBOX], shows: /next/, goesOn: true },
  serve: { args: [SANDBOX, '--port', '0'], shows: /http:\/\/127\.0\.0\.1:\d+/, goesOn: true },
  sandbox: { args: ['--port', '0'], shows: /http:\/\/127\.0\.0\.1:\d+/, goesOn: true, code: 143 },
};

/** The commands below a command, from its help, which is checked to be one. What has options or arguments has none below. */
export async function commandsBelow(
  installed: Installed,
  command: readonly string[] = [],
): Promise<string[]> {
  const help = await installed.output([...command, '--help']);
  expect(help).toContain(`Usage: ${['readership', ...command].join(' ')} `);
  const [, list = ''] = /^Commands:\n((?: .*\n)+)/m.exec(help) ?? [];
  const entries = [...list.matchAll(/^ {2}(\S+)( [[<])?/gm)].filter(([, name]) => name !== 'help');
  if (entries.length === 0) return command.length === 0 ? [] : [command.join(' ')];
  const below = entries.map(async ([, name = '', parameters]) => {
    const names = [...command, name];
    return parameters === undefined ? commandsBelow(installed, names) : names.join(' ');
  });
  return (await Promise.all(below)).flat();
}

/** Runs a command once; one that goes on is stopped as a service manager does, and ends well. */
export async function tryCommand(
  installed: Installed,
  name: string,
  { args, shows, code = 0, goesOn }: Try,
  options: InstalledOptions,
): Promise<void> {
  const typed = [...name.split(' '), ...args];
  if (goesOn === undefined) {
    const ended = await installed.call(typed, options);
    expect(ended, name).toMatchObject({ code });
    expect(ended.stdout + ended.stderr, name).toMatch(shows);
    return;
  }
  const child = installed.start(typed, options);
  let written = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      const wasShown = shows.test(written);
      written += text;
      // A second signal would end it at once.
      if (!wasShown && shows.test(written)) child.kill('SIGTERM');
    });
  await once(child, 'close');
  expect(written, name).toMatch(shows);
  expect(child.exitCode, written).toBe(code);
}
