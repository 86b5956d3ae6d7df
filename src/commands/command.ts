import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import {
  DURATION_FORM,
  isDirectory,
  listeningHost,
  NOT_A_DATASET_DIRECTORY,
  parseDuration,
} from '../config/values.js';
import { parseDay } from '../day.js';
import type { ExitCode } from '../errors.js';

/**
 * Runs the work of a command, and makes its exit code that of the process: also after an
 * interruption, if that is how the command ends.
 */
export type RunCommand = (
  work: (runtime: Runtime) => Promise<ExitCode>,
  command: { readonly options: WorkspaceOptions; readonly endsByInterruption: boolean },
) => Promise<void>;

/** Adds a command to the program, or a subcommand to its command. */
export type AddCommand = (parent: Command, runCommand: RunCommand) => void;

/**
 * An argument or an option. Options are named by their keys: `viewsPerHour` is `--views-per-hour`.
 */
interface Input<Value> {
  /** Its value in the help, such as `<day>` or `[day]`; empty for a flag. */
  readonly form: string;
  readonly help: string;
  readonly parse?: (text: string) => Value;
  readonly choices?: readonly (Value & string)[];
  /** The options with which it cannot be combined. */
  readonly conflicts?: string[];
}

export const flag = (help: string): Input<true> => ({ form: '', help });

export function value(form: string, help: string): Input<string>;
export function value<Value>(form: string, help: string, rules?: Partial<Input<Value>>): Input<Value>;
export function value<Value>(form: string, help: string, rules: Partial<Input<Value>> = {}): Input<Value> {
  return { form, help, ...rules };
}

type Inputs = Readonly<Record<string, Input<unknown>>>;
type ValueOf<One> = One extends Input<infer Value> ? Value : never;
type Values<Arguments extends readonly Input<unknown>[]> = {
  readonly [Index in keyof Arguments]: ValueOf<Arguments[Index]>;
};
type Given<Options extends Inputs> = WorkspaceOptions & {
  // Without options of its own, a command has no other names than those of the workspace.
  readonly [Name in keyof Options as string extends Name ? never : Name]?: ValueOf<Options[Name]>;
};

interface Definition<Options extends Inputs, Arguments extends readonly Input<unknown>[]> {
  /** The description in the list of commands, if it differs. */
  readonly summary?: string;
  readonly description: string;
  readonly arguments?: Arguments;
  readonly options?: Options;
  /** Help before the examples. */
  readonly notes?: string;
  readonly examples: string;
  readonly environment?: string;
  readonly subcommands?: readonly AddCommand[];
  /** Whether this subcommand is the one that its command runs without another name. */
  readonly isDefault?: boolean;
  readonly endsByInterruption?: (options: Given<Options>) => boolean;
  /** Absent for a command that only has subcommands. */
  readonly run?: (
    options: Given<Options>,
    runtime: Runtime,
    ...values: Values<Arguments>
  ) => Promise<ExitCode>;
}

/** A rule for values; commander shows `problem` where `parse` returns undefined. */
const rule = <Value>(parse: (text: string) => Value | undefined, problem: string) => ({
  parse(text: string): Value {
    const parsed = parse(text);
    if (parsed === undefined) throw new InvalidArgumentError(problem);
    return parsed;
  },
});

const wholeNumberUpTo = (max: number, problem: string) =>
  rule((text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    return number <= max ? number : undefined;
  }, problem);

export const aDay = rule(parseDay, 'Write a day as YYYY-MM-DD, such as 2026-01-31.');
export const aDuration = rule(parseDuration, `This is not a duration: ${DURATION_FORM}.`);
export const aWholeNumber = wholeNumberUpTo(999_999, 'Use a whole number.');
export const aPort = wholeNumberUpTo(65_535, 'A port is a whole number up to 65535.');
export const aJob = wholeNumberUpTo(999_999_999, 'Use the number of a job, as in readership jobs list.');
export const aHost = rule(
  (text) => listeningHost.safeParse(text).data,
  'This is not a name or an address of this machine.',
);
export const aDatasetDirectory = rule(
  (text) => (text !== '' && isDirectory(text) ? text : undefined),
  `This is ${NOT_A_DATASET_DIRECTORY}.`,
);

const WORKSPACE = {
  config: value('<file>', 'configuration to use; paths in it are relative to it (default: readership.yaml)'),
  sandbox: flag('use the built-in sandbox instead: needs no account, keeps data in data/sandbox/'),
};
const PROJECT = { project: value('<id>', 'only this project of the configuration') };

export const JSON_OUTPUT = { json: flag('write JSON') };
/** Where the web app listens. */
export const LISTENING = {
  port: value('<port>', 'the port of the web app; 0 picks a free one (default: 8420)', aPort),
  host: value('<host>', 'the address that the web app listens on (default: 127.0.0.1)', aHost),
};

/** What commands that run steps write with `--json`. */
export const JSON_LOG = 'write one JSON object per line, like the log of start';

const environmentHelp = (email: string): string => `Environment (or .env next to the configuration):
  READERSHIP_API_KEY     the admin API key; a project can use another variable
  READERSHIP_CODE_HOST_TOKEN
                         reads pull requests of private repositories
${email}  NO_COLOR               no colors`;

/** For commands that call the platform but send no email. */
export const PLATFORM_ENVIRONMENT = environmentHelp('');

/** For commands that also send email. */
export const EMAIL_ENVIRONMENT =
  environmentHelp(`  READERSHIP_SMTP_URL    the mail server: smtps://user:password@smtp.example.com
                         (without it, emails are written to data/outbox/)
`);

/** A one-sentence description as lists of commands show it. */
const asSummary = (description: string): string =>
  description.replace(/^./, (first) => first.toLowerCase()).replace(/\.$/, '');

/**
 * Declares commands that take these options in addition to their own. Options and arguments have the
 * types that their definitions imply.
 */
const commandWith =
  (common: Inputs) =>
  <Options extends Inputs, const Arguments extends readonly Input<unknown>[] = []>(
    name: string,
    definition: Definition<Options, Arguments>,
  ): AddCommand =>
  (parent, runCommand) => {
    const { description, summary = asSummary(description), run, isDefault = false } = definition;
    const inputs = definition.arguments ?? [];
    const command = parent.command(name, { isDefault }).description(description).summary(summary);
    for (const input of inputs) command.addArgument(ruled(new Argument(input.form, input.help), input));
    for (const [key, input] of Object.entries<Input<unknown>>({ ...common, ...definition.options }))
      addOption(command, key, input);
    const { notes = [], examples, environment = [] } = definition;
    const title = examples.trim().includes('\n') ? 'Examples' : 'Example';
    const wrapped = [notes].flat().map((text) => command.createHelp().boxWrap(text, 80));
    const sections = [wrapped, `${title}:\n${examples.replace(/^\n/, '')}`, environment].flat();
    command.addHelpText('after', `\n${sections.join('\n\n')}`);
    for (const add of definition.subcommands ?? []) add(command, runCommand);
    if (isDefault) makeDefault(command, parent);
    command.allowExcessArguments();
    if (run !== undefined)
      command.action(() => {
        const isVariadic = inputs.at(-1)?.form.includes('...') === true;
        const other = isVariadic ? undefined : command.args[inputs.length];
        if (other !== undefined && isDefault && inputs.length === 0) rejectName(other, parent);
        const why = 'options begin with --, and text with spaces needs quotes';
        if (other !== undefined) command.error(`error: unexpected argument '${other}': ${why}`);
        const options = command.opts<Given<Options>>();
        // Commander has parsed them as defined.
        const values = command.processedArgs as Values<Arguments>;
        const endsByInterruption = definition.endsByInterruption?.(options) ?? false;
        // The project of `init` is one to write down, and not a choice among those of the workspace.
        const chosen = 'project' in common ? options : { ...options, project: undefined };
        return runCommand((runtime) => run(options, runtime, ...values), {
          options: chosen,
          endsByInterruption,
        });
      });
  };

/** The subcommand that a command runs without another name. */
const defaults = new WeakMap<object, Command>();

export const defaultOf = (parent: Command): Command | undefined => defaults.get(parent);

/** From now on, the command shows the help of this subcommand for arguments that name no other: `report weekly --help`. */
function makeDefault(subcommand: Command, parent: { outputHelp: () => void; args: string[] }): void {
  defaults.set(parent, subcommand);
  const ownHelp = parent.outputHelp.bind(parent);
  parent.outputHelp = () => {
    if (parent.args.some((given) => !given.startsWith('-'))) subcommand.outputHelp();
    else ownHelp();
  };
}

export const simpleCommand = commandWith({});
/** With the options that choose a workspace. */
export const workspaceCommand = commandWith(WORKSPACE);
/** Also with one that chooses a project in it. */
export const projectCommand = commandWith({ ...WORKSPACE, ...PROJECT });

export const flagNamed = (key: string): string =>
  `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function addOption(command: Command, key: string, input: Input<unknown>): void {
  const { form, help, conflicts = [] } = input;
  const option = ruled(new Option(`${flagNamed(key)} ${form}`.trim(), help), input).conflicts(conflicts);
  // `--no-check` is a flag like any other.
  option.negate = false;
  command.addOption(option);
  command.on(`option:${option.name()}`, (text: string | null) => {
    // Commander takes whatever follows as the value, even another option.
    if (form.startsWith('<') && text?.startsWith('--') === true)
      command.error(`error: option '${option.flags}' argument missing`);
  });
}

/** An argument or an option with the rules for its values. */
function ruled<Made extends Argument | Option>(made: Made, { parse, choices }: Input<unknown>): Made {
  if (parse !== undefined) made.argParser(parse);
  if (choices !== undefined) made.choices(choices);
  return made;
}

/**
 * Rejects what is not the name of a command. A default subcommand gets unknown names as arguments;
 * without it, commander suggests a similar name. After an option, even a known name is an argument.
 */
export function rejectName(name: string, parent: Command): never {
  const named = new Command().copyInheritedSettings(parent);
  for (const command of parent.commands) named.command(command.name());
  if (/^[a-z]/i.test(name)) named.parse([name], { from: 'user' });
  return parent.error(`error: unexpected argument '${name}'`);
}
