import { CommanderError } from 'commander';
import { setMaxListeners } from 'node:events';
import { closeSync, fstatSync, readFileSync, writeFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Runtime } from './app/workspace.js';
import type { RunCommand } from './commands/command.js';
import { exitCodeOf, messageOf } from './errors.js';
import { commandLine, withQuery } from './commands/program.js';
import { packageFile } from './files.js';
import { errorWords } from './storage.js';
import { loadScreen, Output } from './terminal/output.js';

/** The exit code of a program ended by a signal: 128 plus the signal's number. */
const SIGNAL_EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

// Of a host with several addresses, Node.js gives each a quarter of a second, and then gives up. A distant one takes longer,
// and one whose first packet is lost takes a second more.
setDefaultAutoSelectFamilyAttemptTimeout(3_000);

const interruption = new AbortController();
// All pending work listens to it, and Node.js would warn about more than ten listeners.
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

// Node.js would print an uncaught error with all its properties, which may include secrets.
process.on('uncaughtException', (error) => {
  output.note(explain(error));
  process.exit(1);
});

// Node.js ignores that a full disk took only part of what it writes to a file at once.
if (fstatSync(1).isFile())
  process.stdout._write = (chunk: Uint8Array, _, done) => {
    try {
      writeFileSync(1, chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  };
let isUnread = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (interruptedWith !== undefined || isUnread) return;
  // A closed terminal counts as SIGHUP.
  if (error.code === 'EIO') return interrupt('SIGHUP');
  if (output.goesOnUnread) {
    isUnread = true;
    return output.note(`Standard output is gone (${error.code}). The work goes on without it.`);
  }
  // A reader such as `head` may close the pipe early.
  if (error.code === 'EPIPE') process.exit(0);
  output.note(explain(error));
  process.exit(1);
});
// Standard error may be closed.
process.stderr.on('error', () => undefined);
// Node.js aborts if it cannot restore the settings of a closed terminal, unless its files are closed.
process.on('exit', () => {
  if (interruptedWith !== SIGNAL_EXIT_CODES.SIGHUP) return;
  for (const file of [0, 1, 2])
    try {
      closeSync(file);
    } catch {
      // It is closed already.
    }
});

// Such a terminal, as in Emacs, can neither color nor erase.
const isDumb = process.env['TERM'] === 'dumb';
const isTerminal = !isDumb && (process.stdout.isTTY || process.stderr.isTTY);
const screen = isTerminal ? await loadScreen() : undefined;
const isColorWanted = !isDumb && (process.env['NO_COLOR'] ?? '') === '';
const output = new Output(process.stdout, process.stderr, isColorWanted, screen);
const runtime: Runtime = {
  workingDirectory: process.cwd(),
  environment: process.env,
  now: () => new Date(),
  signal: interruption.signal,
  output,
};

const runCommand: RunCommand = async (work, { options, endsByInterruption }) => {
  output.repeatOptions(options);
  command.endsByInterruption = endsByInterruption;
  process.exitCode = await work(runtime);
};

try {
  const program = await commandLine(runCommand, process.argv[2]);
  await program.parseAsync(withQuery(process.argv));
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    if (isTerminalGone(error)) interrupt('SIGHUP');
    if (interruptedWith === undefined) output.note(explain(error));
    process.exitCode = interruptedWith ?? exitCodeOf(error);
  }
}
if (interruptedWith !== undefined && !command.endsByInterruption) process.exitCode = interruptedWith;

/** The SQL prompt may meet a closed terminal before SIGHUP arrives. */
function isTerminalGone(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'setRawMode';
}

/** A bug is shown with its stack, to be reported. */
function explain(error: unknown): string {
  const words = errorWords(error);
  if (words !== undefined) return output.noteColors.red(words);
  const detail =
    error instanceof Error && error.stack !== undefined ? stackInSource(error.stack) : messageOf(error);
  return `${output.noteColors.red('This is a bug in Readership; please report it:')}\n${detail}`;
}

/**
 * A stack with positions in the source files, if the program has source maps. Node.js can do the
 * same, but reads every map whenever a file is loaded.
 */
function stackInSource(stack: string): string {
  return stack.replaceAll(
    /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g,
    (place, url: string, line: string, column: string) => {
      try {
        const file = fileURLToPath(url);
        const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload);
        const origin = map.findOrigin(Number(line), Number(column));
        if (!('fileName' in origin)) return place;
        const source = relative(packageFile(''), resolve(dirname(file), origin.fileName));
        return `${source}:${origin.lineNumber}:${origin.columnNumber}`;
      } catch {
        // Without a map, the position in the bundle is still useful.
        return place;
      }
    },
  );
}
