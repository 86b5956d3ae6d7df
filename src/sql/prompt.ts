import type { DuckDBConnection } from '@duckdb/node-api';
import { createInterface, type Interface } from 'node:readline';
import { messageOf } from '../errors.js';
import { completenessOf } from './answer.js';
import { schemaOf, TABLES } from './dictionary.js';

const LEAVE = /^\s*[.\\]?(exit|quit|q)\s*;?\s*$/i;
const HELP_WORDS = /^\s*[.\\]?(help|h|\?)\s*;?\s*$/i;
/** A command as in the shells of DuckDB, SQLite and PostgreSQL. */
const COMMAND = /^\s*[.\\](?<command>\w+)\s*(?<name>.*?)\s*;?\s*$/;

const HELP = `End a statement with a semicolon. Ctrl-C stops a query, exit or Ctrl-D leaves.
.tables lists what there is. .schema site_weeks lists its columns, and
.schema movers shows how to call a macro. .help shows this.`;

/** The SQL of a command; undefined if there is no such command. */
function sqlOf({ command = '', name = '' }: Partial<Record<string, string>>): string | undefined {
  if (/^(tables|dt?)$/i.test(command)) return TABLES;
  return /^(schema|columns)$/i.test(command) ? schemaOf(name) : undefined;
}

export interface PromptOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly connection: DuckDBConnection;
  /** Runs a statement; its rejection is passed to `onError`, and the prompt continues. */
  readonly answer: (sql: string) => Promise<void>;
  readonly onError: (message: string) => void;
}

/** A simple prompt for multi-line statements, until Ctrl-D. */
export async function runPrompt({ output, answer, onError, ...options }: PromptOptions): Promise<void> {
  const { connection } = options;
  const prompt = new PromptLines(options.input, output, connection);
  const run = (sql: string) =>
    prompt.during(() => answer(sql).catch((error: unknown) => onError(messageOf(error))));
  output.write(`${HELP}\n`);
  prompt.begin();
  for await (const line of prompt.lines) {
    const isFirst = prompt.statement === '';
    if (isFirst && LEAVE.test(line)) break;
    const command = isFirst ? COMMAND.exec(line)?.groups : undefined;
    if (isFirst && HELP_WORDS.test(line)) output.write(`${HELP}\n`);
    else if (command !== undefined) {
      const sql = sqlOf(command);
      if (sql === undefined) onError(`There is no command ${line.trim()}: .help shows what there is.`);
      else await run(sql);
    } else {
      prompt.statement = isFirst ? line : `${prompt.statement}\n${line}`;
      const completeness = await completenessOf(connection, prompt.statement);
      if (completeness === 'complete') await run(prompt.statement);
      if (completeness !== 'open') prompt.statement = '';
    }
    prompt.begin();
  }
  prompt.lines.close();
  output.write('\n');
}

/** The lines at the prompt, and what Ctrl-C does. */
class PromptLines {
  /** The lines of a statement that is not complete yet. */
  statement = '';
  readonly lines: Interface;
  #isBusy = false;
  #isClosed = false;
  #stopping: NodeJS.Timeout | undefined;

  constructor(input: NodeJS.ReadableStream, output: NodeJS.WritableStream, connection: DuckDBConnection) {
    this.lines = createInterface({ input, output });
    this.lines.on('close', () => {
      this.#isClosed = true;
    });
    this.lines.on('SIGINT', () => {
      // One interruption ends only what DuckDB does at that moment.
      if (this.#isBusy) this.#stopping ??= setInterval(() => connection.interrupt(), 50);
      else {
        this.statement = '';
        output.write('\n');
        this.begin();
      }
    });
  }

  /** Asks for the next line. */
  begin(): void {
    this.lines.setPrompt(this.statement === '' ? 'sql> ' : '  -> ');
    // Lines that arrived before the end are still to be run; newer versions of Node.js refuse to prompt then.
    if (!this.#isClosed) this.lines.prompt();
  }

  /** Does some work, which Ctrl-C interrupts. */
  async during(work: () => Promise<unknown>): Promise<void> {
    this.#isBusy = true;
    await work();
    clearInterval(this.#stopping);
    this.#stopping = undefined;
    this.#isBusy = false;
  }
}
