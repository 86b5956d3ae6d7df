#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { setMaxListeners } from 'node:events';
import { closeSync, readFileSync } from 'node:fs';
import { declareAudit } from './commands/audit.js';
import type { Runtime } from './app/workspace.js';
import { declareDoctor } from './commands/doctor.js';
import { declareExport } from './commands/export.js';
import { declareImprove } from './commands/improve.js';
import { declareInit } from './commands/init.js';
import { declareJobs } from './commands/jobs.js';
import { ENVIRONMENT_HELP } from './commands/options.js';
import { Output } from './terminal/output.js';
import { declarePublish } from './commands/publish.js';
import { declareReport } from './commands/report.js';
import { declareRestore } from './commands/restore.js';
import { declareRun } from './commands/run.js';
import { declareSandbox } from './commands/sandbox.js';
import { declareSql } from './commands/sql.js';
import { declareStart } from './commands/start.js';
import { declareStatus } from './commands/status.js';
import { type ExitCode, exitCodeOf, messageOf, ReadershipError } from './errors.js';

/** What a shell expects of a program ended by a signal: 128 plus the signal's number. */
const SIGNAL_EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

const interruption = new AbortController();
// Everything under way listens to it, and Node.js would warn about more than ten listeners.
setMaxListeners(0, interruption.signal);
let interruptedWith: number | undefined;
const command = { endsByInterruption: false };

function interrupt(signal: keyof typeof SIGNAL_EXIT_CODES): void {
  interruptedWith = SIGNAL_EXIT_CODES[signal];
  interruption.abort(new Error(`interrupted by ${signal}`));
}

for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    if (interruptedWith === undefined) interrupt(signal);
    // A second request ends the process at once; the database rolls back what is not committed. But a
    // terminal that closes may send SIGHUP more than once.
    else if (signal !== 'SIGHUP') process.exit(SIGNAL_EXIT_CODES[signal]);
  });

// Catches whatever was thrown elsewhere: Node.js would print it with everything it holds.
process.on('uncaughtException', (error) => {
  output.note(explain(error));
  process.exit(1);
});

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (interruptedWith !== undefined) return;
  // A terminal that is gone counts as SIGHUP. A reader such as `head` may close the pipe early.
  if (error.code === 'EIO') interrupt('SIGHUP');
  else process.exit(error.code === 'EPIPE' ? 0 : 1);
});
// Notes that nobody can read are no reason to stop.
process.stderr.on('error', () => undefined);
// Node.js aborts when it cannot restore the settings of a terminal that is gone, unless its files are closed.
process.on('exit', () => {
  if (interruptedWith === SIGNAL_EXIT_CODES.SIGHUP) for (const file of [0, 1, 2]) closeQuietly(file);
});

const output = new Output(process.stdout, process.stderr, (process.env['NO_COLOR'] ?? '') === '');
const runtime: Runtime = {
  workingDirectory: process.cwd(),
  environment: process.env,
  now: () => new Date(),
  signal: interruption.signal,
  output,
};

async function act(
  work: (runtime: Runtime) => Promise<ExitCode>,
  { endsByInterruption = false } = {},
): Promise<void> {
  command.endsByInterruption = endsByInterruption;
  process.exitCode = await work(runtime);
}

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const program = new Command('readership')
  .description(
    'Keeps the history of who reads your docs, people and AI, in a DuckDB file you hold; reports on it, and puts agents to work on the pages that matter.',
  )
  .version(version)
  .showHelpAfterError('Run it with --help to see what it takes.')
  .addHelpText(
    'after',
    `
Exit codes: 0 done · 1 failed · 2 usage or configuration · 75 try again later · 130 interrupted (143 by SIGTERM, 129 by SIGHUP)
${ENVIRONMENT_HELP}

Start here: readership run --sandbox`,
  )
  .exitOverride();

for (const declare of [
  declareRun,
  declareStart,
  declareExport,
  declareAudit,
  declareSql,
  declareStatus,
  declareDoctor,
  declareReport,
  declareImprove,
  declareJobs,
  declarePublish,
  declareRestore,
  declareInit,
  declareSandbox,
])
  declare(program, act);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    if (isTerminalGone(error)) interrupt('SIGHUP');
    if (interruptedWith === undefined) output.note(explain(error));
    process.exitCode = exitCodeOf(error);
  }
}
if (interruptedWith !== undefined && !command.endsByInterruption) process.exitCode = interruptedWith;

/** The SQL prompt may meet a closed terminal before SIGHUP arrives. */
function isTerminalGone(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'setRawMode';
}

function closeQuietly(file: number): void {
  try {
    closeSync(file);
  } catch {
    // It is closed already.
  }
}

/** People get the message; a fault of our own comes with its stack, to be reported. */
function explain(error: unknown): string {
  if (error instanceof ReadershipError) return output.noteColors.red(error.message);
  const detail = error instanceof Error && error.stack !== undefined ? error.stack : messageOf(error);
  return `${output.noteColors.red('This is a fault of Readership itself; please report it:')}\n${detail}`;
}
