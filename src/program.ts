import { Command } from 'commander';
import type { Act } from './commands/options.js';
import { version } from './files.js';

/** The commands in the order of the help, each loaded only when needed, because loading all of them is slow. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command, act: Act) => void>>> = {
  run: async () => (await import('./commands/run.js')).declareRun,
  start: async () => (await import('./commands/start.js')).declareStart,
  export: async () => (await import('./commands/export.js')).declareExport,
  audit: async () => (await import('./commands/audit.js')).declareAudit,
  sql: async () => (await import('./commands/sql.js')).declareSql,
  status: async () => (await import('./commands/status.js')).declareStatus,
  doctor: async () => (await import('./commands/doctor.js')).declareDoctor,
  report: async () => (await import('./commands/report.js')).declareReport,
  serve: async () => (await import('./commands/serve.js')).declareServe,
  improve: async () => (await import('./commands/improve.js')).declareImprove,
  jobs: async () => (await import('./commands/jobs.js')).declareJobs,
  mcp: async () => (await import('./commands/mcp.js')).declareMcp,
  publish: async () => (await import('./commands/publish.js')).declarePublish,
  restore: async () => (await import('./commands/restore.js')).declareRestore,
  init: async () => (await import('./commands/init.js')).declareInit,
  sandbox: async () => (await import('./commands/sandbox.js')).declareSandbox,
  completion: async () => (await import('./commands/completion.js')).declareCompletion,
};

/** The program with the command in the arguments, or with all commands for help, suggestions and completion. */
export async function commandLine(act: Act, first = ''): Promise<Command> {
  const program = new Command('readership')
    .description(
      'Keeps the history of who reads your docs, people and AI, in your own DuckDB file, reports on it, and puts agents to work on the pages that matter.',
    )
    .version(version)
    .showHelpAfterError('For help, add --help.')
    .exitOverride();
  if (first === '--version' || first === '-V') return program;
  const named = Object.hasOwn(COMMANDS, first) && first !== 'completion' ? COMMANDS[first] : undefined;
  for (const load of named === undefined ? Object.values(COMMANDS) : [named]) (await load())(program, act);
  if (named !== undefined) return program;
  const { ENVIRONMENT_HELP } = await import('./commands/options.js');
  program.addHelpText(
    'after',
    `
Exit codes: 0 done · 1 failed · 2 usage or configuration · 75 try again later · 130 interrupted (143 by SIGTERM, 129 by SIGHUP)
${ENVIRONMENT_HELP}

Start here: readership run --sandbox`,
  );
  return program;
}
