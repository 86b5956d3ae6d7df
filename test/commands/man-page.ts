import type { Command } from 'commander';
import { commandLine } from '../../src/commands/program.js';

/** All commands, none of which runs. */
export const commandTree = (): Promise<Command> =>
  commandLine(() => Promise.reject(new Error('nothing is run')));

/** The manual page: --help of all commands, on one page. */
export async function manPage(): Promise<string> {
  const program = await commandTree();
  const [exitCodes = '', environment = ''] = afterHelp(program).split(/\n\n(?=Environment)/);
  const [start = ''] = /^Start here: .*/m.exec(environment) ?? [];
  const shared = environment.replace(start, '').trim();
  return [
    `.TH READERSHIP 1 "" "readership ${program.version() ?? ''}"`,
    '.SH NAME',
    'readership \\- export and report who reads your docs',
    '.SH SYNOPSIS',
    '.B readership',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    text(program.description()),
    '.PP',
    text(start),
    '.SH COMMANDS',
    ...program.commands.flatMap((command) => section(command, 'readership', shared)),
    '.SH COMMON OPTIONS',
    'Every command but init, sandbox and completion takes them.',
    ...optionsOf(program.commands[0] ?? program, (name) => COMMON.includes(name)),
    '.SH ENVIRONMENT',
    ...verbatim(shared.replace(/^.*\n/, '')),
    '.SH EXIT STATUS',
    text(exitCodes.replace('Exit codes: ', '')),
    '.SH FILES',
    ...['readership.yaml', '.env', 'data/history.duckdb'].flatMap((file, index) => [
      '.TP',
      `.I ${text(file)}`,
      ['the configuration', 'secrets', 'the published history'][index] ?? '',
    ]),
    '',
  ].join('\n');
}

const COMMON: readonly string[] = ['--config', '--sandbox', '--shard'];

function optionsOf(command: Command, isShown: (name: string) => boolean): string[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command).filter(({ long, flags }) => isShown(long ?? flags));
  return options.flatMap((option) => [
    '.TP',
    `.B ${text(help.optionTerm(option))}`,
    text(help.optionDescription(option)),
  ]);
}

function section(command: Command, parent: string, shared: string): string[] {
  const help = command.createHelp();
  const name = `${parent} ${command.name()}`;
  const after = afterHelp(command).replace(/^Environment[^]*/m, (part) =>
    shared.startsWith(part.trim().slice(0, 100)) ? '' : part,
  );
  return [
    `.SS ${name} ${text(command.usage())}`,
    text(command.description()),
    ...help
      .visibleArguments(command)
      .flatMap((argument) => [
        '.TP',
        `.I ${text(help.argumentTerm(argument))}`,
        text(help.argumentDescription(argument)),
      ]),
    ...optionsOf(command, (name) => name !== '--help' && !COMMON.includes(name)),
    ...(after === '' ? [] : ['.PP', ...verbatim(after)]),
    ...command.commands.flatMap((child) => section(child, name, shared)),
  ];
}

/** What `--help` prints. */
export function helpOf(command: Command): string {
  let written = '';
  command.configureOutput({
    writeOut: (part) => {
      written += part;
    },
  });
  command.outputHelp();
  return written;
}

/** What `addHelpText` adds. */
const afterHelp = (command: Command): string => helpOf(command).replace(command.helpInformation(), '').trim();

const verbatim = (lines: string): string[] => ['.nf', ...lines.trimEnd().split('\n').map(text), '.fi'];

/** Text escaped for roff. */
const text = (raw: string): string =>
  raw
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&');
