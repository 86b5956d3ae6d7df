import { escapeMarkup } from './text.js';

/** Options with which a command was invoked that choose a workspace and a project in it. */
export interface Invocation {
  readonly config?: string | undefined;
  readonly sandbox?: boolean | undefined;
  readonly project?: string | undefined;
}

/**
 * The commands that messages advise, with the name of a report or the number of a job: those that also choose a project,
 * and those that only choose a workspace.
 */
const OF_PROJECT =
  'export|audit|improve|report(?: (?:send|resolve))?(?: \\w+(?= --|$|<))?|jobs (?:list|poll)';
const OF_WORKSPACE =
  'run|start|sql|status|doctor(?! --url)|serve|mcp|publish|adopt|restore|jobs(?: (?:show|message|settle)(?: \\d+)?)?';
/** Not `report new`, and not what another process runs, as in “held by `readership start` (process 7”. */
const ADVICE = new RegExp(
  '\\breadership (?![a-z ]+`? \\(process)' +
    `(?:(${OF_PROJECT})|${OF_WORKSPACE})\\b(?![-/]| new\\b)` +
    '([^\\n.,;:`()<]*)',
  'gm',
);

/**
 * A message whose advice repeats the options of this invocation: after `improve --sandbox --skip /x`, to undo it is
 * `readership improve --sandbox --unskip /x`.
 */
export function asInvoked(words: string, { config, sandbox, project }: Invocation): string {
  if (config === undefined && sandbox !== true && project === undefined) return words;
  const chosen =
    config === undefined ? (sandbox === true ? ' --sandbox' : '') : ` --config ${quoted(config)}`;
  return words.replaceAll(ADVICE, (command: string, ofProject: string | undefined, rest: string) => {
    const name = command.slice(0, command.length - rest.length);
    const workspace = /--(?:config|sandbox)\b/.test(rest) ? '' : chosen;
    const only =
      ofProject === undefined || project === undefined || rest.includes('--project')
        ? ''
        : ` --project ${quoted(project)}`;
    return `${name}${workspace}${only}${rest}`;
  });
}

/** The same for HTML, except for what people type in it. */
export const pageAsInvoked = (html: string, { config, ...invocation }: Invocation): string =>
  html
    .split(/(<textarea[^]*?<\/textarea>)/)
    .map((part, index) =>
      index % 2 === 1 ? part : asInvoked(part, { ...invocation, config: config && escapeMarkup(config) }),
    )
    .join('');

/** A value as one types it in a shell. */
const quoted = (value: string): string =>
  /^[\w./:@%+=-]+$/.test(value) ? value : `'${value.replaceAll("'", String.raw`'\''`)}'`;
