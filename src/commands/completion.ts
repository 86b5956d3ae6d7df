import type { Command, Option } from 'commander';
import { type Declare, defineCommand, value } from './command.js';

const SHELLS = { bash, zsh, fish };

export const completion: Declare = (program, act) => {
  defineCommand({
    name: 'completion',
    summary: 'complete commands and options in bash, zsh or fish',
    description: 'Writes a script that completes commands, options and their values.',
    arguments: [value('<shell>', 'bash, zsh or fish', { choices: ['bash', 'zsh', 'fish'] as const })],
    examples: `
  readership completion bash > ~/.local/share/bash-completion/completions/readership
  readership completion zsh >> ~/.zshrc
  readership completion fish > ~/.config/fish/completions/readership.fish`,
    run: (_, { output }, shell) => {
      output.data(SHELLS[shell](placesIn(program)));
      return Promise.resolve(0);
    },
  })(program, act);
};

/** A command by its words, such as ` jobs show`. */
interface Place {
  readonly path: string;
  readonly commands: readonly Command[];
  /** What its arguments may be. */
  readonly values: readonly string[];
  readonly options: readonly Option[];
}

const placesIn = (command: Command, path = ''): Place[] => {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const values = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  return [
    { path, commands, values, options: help.visibleOptions(command) },
    ...command.commands.flatMap((child) => placesIn(child, `${path} ${child.name()}`)),
  ];
};

const flagOf = ({ long, flags }: Option): string => long ?? flags;
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Without a match, such as for a file or a day, the shell completes file names. */
function bash(places: readonly Place[]): string {
  const words = places.map(
    ({ path, commands, values, options }) =>
      `    ${quoted(path)}) words=${quoted([...commands.map((command) => command.name()), ...values, ...options.map(flagOf)].join(' '))} ;;`,
  );
  const values = places.flatMap(({ path, options }) =>
    options
      .filter(({ required }) => required)
      .map(
        (option) =>
          `    ${quoted(`${path} ${flagOf(option)}`)}) words=${quoted(option.argChoices?.join(' ') ?? '')} ;;`,
      ),
  );
  const nested = places.slice(1).map(({ path }) => quoted(path));
  return `_readership() {
  local place='' word words=''
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case "$place $word" in
    ${nested.join('|')}) place="$place $word" ;;
    esac
  done
  case "$place" in
${words.join('\n')}
  esac
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
${values.join('\n')}
  esac
  # shellcheck disable=SC2207 # no word has a space; mapfile is neither in zsh nor on macOS
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _readership readership`;
}

function zsh(places: readonly Place[]): string {
  return `autoload -Uz compinit bashcompinit && compinit && bashcompinit\n${bash(places)}`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, values, options }) => {
    const inside = (path.match(/\S+/g) ?? []).map((word) => `__fish_seen_subcommand_from ${word}`);
    const names = commands.map((command) => command.name());
    const outside = names.length === 0 ? [] : [`not __fish_seen_subcommand_from ${names.join(' ')}`];
    const atCommand = [...inside, ...outside].join('; and ');
    return [
      ...commands.map(
        (command) =>
          `-f -n ${quoted(atCommand)} -a ${command.name()} -d ${quoted(command.summary() || command.description())}`,
      ),
      ...values.map((value) => `-f -n ${quoted(atCommand)} -a ${value}`),
      ...options.map((option) => {
        const choices = option.argChoices && ` -x -a ${quoted(option.argChoices.join(' '))}`;
        const kind = choices ?? (option.required ? ' -r' : '');
        const condition = inside.length === 0 ? '' : `-n ${quoted(atCommand)} `;
        return `${condition}-l ${flagOf(option).replace('--', '')} -d ${quoted(option.description)}${kind}`;
      }),
    ];
  });
  return lines.map((line) => `complete -c readership ${line}`).join('\n');
}
