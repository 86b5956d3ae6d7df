import { Command } from 'commander';
import type { Runtime } from '../app/workspace.js';
import { type AddCommand, defaultOf, EMAIL_ENVIRONMENT, rejectName, type RunCommand } from './command.js';
import { version } from '../files.js';

/**
 * The commands in the order of the help, each loaded only when needed, because loading all of them
 * is slow.
 */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  run: async () => (await import('./run.js')).run,
  start: async () => (await import('./start.js')).start,
  export: async () => (await import('./export.js')).exportCommand,
  audit: async () => (await import('./export.js')).audit,
  sql: async () => (await import('./sql.js')).sql,
  status: async () => (await import('./status.js')).status,
  doctor: async () => (await import('./doctor.js')).doctor,
  report: async () => (await import('./report.js')).report,
  serve: async () => (await import('./serve.js')).serve,
  improve: async () => (await import('./improve.js')).improve,
  jobs: async () => (await import('./jobs.js')).jobs,
  mcp: async () => (await import('./serve.js')).mcp,
  publish: async () => (await import('./export.js')).publish,
  adopt: async () => (await import('./restore.js')).adopt,
  restore: async () => (await import('./restore.js')).restore,
  init: async () => (await import('./init.js')).init,
  sandbox: async () => (await import('./sandbox.js')).sandbox,
};

/** What people call a command after other tools, or after what they want. */
const MEANT: Readonly<Record<string, string>> = {
  agents: 'improve',
  ask: 'sql',
  backfill: 'export',
  browse: 'serve',
  check: 'doctor',
  compare: 'audit',
  config: 'init',
  daemon: 'start',
  dashboard: 'serve',
  db: 'sql',
  demo: 'run --sandbox',
  diff: 'audit',
  download: 'export',
  email: 'report send',
  emails: 'report send',
  fetch: 'export',
  health: 'doctor',
  import: 'restore',
  info: 'status',
  load: 'export',
  mail: 'report send',
  prs: 'jobs',
  query: 'sql',
  recover: 'restore',
  reports: 'report list',
  schedule: 'start',
  select: 'sql',
  send: 'report send',
  setup: 'init',
  shell: 'sql',
  show: 'report weekly',
  stats: 'status',
  sync: 'export',
  test: 'doctor',
  ui: 'serve',
  update: 'run',
  verify: 'audit',
  version: '--version',
  web: 'serve',
  weekly: 'report weekly',
};

/**
 * Rejects the beginning of a command, or what others call it, and says which is meant. Commander itself finds similar
 * spellings, such as `start` for `stat`.
 */
function refuseIfMeant(program: Command, given: string): void {
  const name = given.toLowerCase();
  const beginning = Object.keys(COMMANDS).filter((command) => command.startsWith(name));
  const called = Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
  const meant = beginning.length === 1 ? beginning[0] : called;
  if (meant !== undefined) program.error(`error: unknown command '${given}'\n(Did you mean ${meant}?)`);
}

const OVERVIEW = `Shows which of your docs pages people and AI read, and what changed.

  readership init                    set it up for your documentation
  readership run                     load views, then send reports that are due
  readership report weekly --open    the last whole week, as a page
  readership status                  what is stored, and what needs your attention
  readership sql                     query the history with SQL

Without an account: readership run --sandbox
All commands: readership --help`;

/**
 * The program with the command in the arguments, or with all commands for help and suggestions.
 */
export async function commandLine(runCommand: RunCommand, first = ''): Promise<Command> {
  const program = new Command('readership')
    .description(
      "Shows which of your docs pages people and AI read, and what changed: in a weekly email, in SQL and in the browser. Lets your platform's agents improve the most-read ones.",
    )
    .version(version)
    .showHelpAfterError('For help, add --help.')
    .exitOverride();
  if (first === '--version' || first === '-V') return program;
  if (first === 'help') addHelp(program);
  const named = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined;
  for (const load of named === undefined ? Object.values(COMMANDS) : [named])
    (await load())(program, runCommand);
  if (named !== undefined) return program;
  if (first !== '') refuseIfMeant(program, first);
  else
    program.helpCommand(true).action(() =>
      runCommand(
        ({ output }: Runtime) => {
          if (!output.isTerminal) program.help({ error: true });
          output.words(OVERVIEW);
          return Promise.resolve(0);
        },
        { options: {}, endsByInterruption: false },
      ),
    );
  program.addHelpText(
    'after',
    `
Exit codes: 0 done · 1 failed · 2 usage or configuration · 75 try again later ·
130 interrupted (143 by SIGTERM, 129 by SIGHUP)

${EMAIL_ENVIRONMENT}

Start here: readership run --sandbox`,
  );
  return program;
}

/**
 * The arguments, of which an SQL query may begin with a comment: `-- the top pages`. A blank before it changes no SQL, and
 * keeps it from being read as an option, which has no blank in its name.
 */
export const withQuery = (argv: readonly string[]): string[] =>
  argv.map((given) => (argv[2] === 'sql' && /^--[^=]*\s/.test(given) ? ` ${given}` : given));

/** `help jobs message` is `jobs message --help`, and `help report weekly` that of rendering it; any other name is an error. */
function addHelp(program: Command): void {
  program.command('help [command...]', { hidden: true }).action((names: readonly string[]) => {
    let shown = program;
    for (const name of names) {
      if (shown.commands.length === 0) break;
      const named = shown.commands.find((command) => command.name() === name);
      const unnamed = defaultOf(shown);
      const takesName = unnamed !== undefined && unnamed.registeredArguments.length > 0;
      if (shown === program && named === undefined) refuseIfMeant(program, name);
      shown = named ?? (takesName ? unnamed : rejectName(name, shown));
    }
    shown.help();
  });
}
