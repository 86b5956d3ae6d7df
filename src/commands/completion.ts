import type { Command, Option } from 'commander';
import { type Declare, simpleCommand, value } from './command.js';

const SHELLS = { bash, zsh, fish };

export const completion: Declare = (program, act) => {
  simpleCommand('completion', {
    summary: 'complete commands and options in bash, zsh or fish',
    description: 'Writes a script that completes commands, options and their values.',
    arguments: [value('<shell>', 'bash, zsh or fish', { choices: ['bash', 'zsh', 'fish'] as const })],
    examples: `
  readership completion bash >> ~/.bashrc
  readership completion zsh >> ~/.zshrc
  readership completion fish > ~/.config/fish/completions/readership.fish`,
    run: (_, { output }, shell) => {
      output.data(SHELLS[shell](placesIn(program)));
      return Promise.resolve(0);
    },
  })(program, act);
};

/** A command by its words, such as ` jobs show`, and the commands and options that may follow it. */
interface CompletedWord {
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
}

/** Subcommands come before their command. */
const placesIn = (command: Command, path = ''): CompletedWord[] => {
  const help = command.createHelp();
  return [
    ...command.commands.flatMap((child) => placesIn(child, `${path} ${child.name()}`)),
    { path, commands: help.visibleCommands(command), options: help.visibleOptions(command) },
  ];
};

const flagOf = ({ long, flags }: Option): string => long ?? flags;
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Without a match, such as for a file or a day, the shell completes file names. */
function bash(places: readonly CompletedWord[]): string {
  const line = (pattern: string, words: readonly string[]) =>
    `    ${pattern}) words=${quoted(words.join(' '))} ;;`;
  // A place and the word before the cursor: the words of an option's value, or else of its place.
  const cases = places.flatMap(({ path, commands, options }) => [
    ...options
      .filter(({ required }) => required)
      .map((option) => line(quoted(`${path} ${flagOf(option)}`), option.argChoices ?? [])),
    line(`${quoted(`${path} `)}*`, [...commands.map((one) => one.name()), ...options.map(flagOf)]),
  ]);
  const nested = places.slice(0, -1).map(({ path }) => quoted(path));
  return `_readership() {
  local place='' word words=''
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case "$place $word" in
    ${nested.join('|')}) place="$place $word" ;;
    esac
  done
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
${cases.join('\n')}
  esac
  # shellcheck disable=SC2207 # no word has a space; mapfile is neither in zsh nor on macOS
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _readership readership`;
}

function zsh(places: readonly CompletedWord[]): string {
  return `autoload -Uz compinit bashcompinit && compinit && bashcompinit\n${bash(places)}`;
}

function fish(places: readonly CompletedWord[]): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const inside = (path.match(/\S+/g) ?? []).map((word) => `__fish_seen_subcommand_from ${word}`);
    const names = commands.map((command) => command.name());
    const outside = names.length === 0 ? [] : [`not __fish_seen_subcommand_from ${names.join(' ')}`];
    const here = `-f -n ${quoted([...inside, ...outside].join('; and '))}`;
    return [
      ...commands.map((one) => `${here} -a ${one.name()} -d ${quoted(one.summary() || one.description())}`),
      ...options.map((option) => {
        const choices = option.argChoices && ` -x -a ${quoted(option.argChoices.join(' '))}`;
        const kind = choices ?? (option.required ? ' -r' : '');
        const condition = inside.length === 0 ? '' : here.replace('-f ', '');
        return `${condition} -l ${flagOf(option).slice(2)} -d ${quoted(option.description)}${kind}`;
      }),
    ];
  });
  return lines.map((line) => `complete -c readership ${line.trim()}`).join('\n');
}
