import type { DuckDBConnection } from '@duckdb/node-api';
import { createInterface } from 'node:readline';
import { messageOf } from '../errors.js';
import { completenessOf } from './answer.js';
import { completionsOf, schemaOf, TABLES } from './dictionary.js';

const LEAVE = /^\s*[.\\]?(exit|quit|q)\s*;?\s*$/i;
const HELP_WORDS = /^\s*[.\\]?(help|h|\?)\s*;?\s*$/i;
/** A command as in the shells of DuckDB, SQLite and PostgreSQL. */
const COMMAND = /^\s*[.\\](?<command>\w+)\s*(?<name>.*?)\s*;?\s*$/;

const HELP = `End a statement with a semicolon. Tab completes, Ctrl-C stops a query, exit or Ctrl-D leaves.
.tables lists what there is, .schema site_weeks lists its columns, and .help shows this.`;

/** The SQL of a command; undefined if there is no such command. */
function sqlOf({ command = '', name = '' }: Partial<Record<string, string>>): string | undefined {
  if (/^(tables|dt?)$/i.test(command)) return TABLES;
  return /^(schema|columns)$/i.test(command) ? schemaOf(name) : undefined;
}

export interface PromptOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly connection: DuckDBConnection;
  /** What Tab completes. */
  readonly names: readonly string[];
  /** Runs a statement; its rejection is passed to `onError`, and the prompt continues. */
  readonly answer: (sql: string) => Promise<void>;
  readonly onError: (message: string) => void;
}

/** A simple prompt for multi-line statements, until Ctrl-D. */
export async function runPrompt({
  input,
  output,
  connection,
  names,
  answer,
  onError,
}: PromptOptions): Promise<void> {
  let statement = '';
  let isBusy = false;
  let stopping: NodeJS.Timeout | undefined;
  let isClosed = false;
  const prompt = createInterface({
    input,
    output,
    prompt: 'sql> ',
    completer: (line: string) => {
      const { word, found } = completionsOf(names, line);
      return [found, word];
    },
  });
  const begin = () => {
    prompt.setPrompt(statement === '' ? 'sql> ' : '  -> ');
    // Lines that arrived before the end are still to be run; newer versions of Node.js refuse to prompt then.
    if (!isClosed) prompt.prompt();
  };
  prompt.on('close', () => {
    isClosed = true;
  });
  prompt.on('SIGINT', () => {
    // One interruption ends only what DuckDB does at that moment.
    if (isBusy) stopping ??= setInterval(() => connection.interrupt(), 50);
    else {
      statement = '';
      output.write('\n');
      begin();
    }
  });
  const run = async (sql: string) => {
    isBusy = true;
    await answer(sql).catch((error: unknown) => onError(messageOf(error)));
    clearInterval(stopping);
    stopping = undefined;
    isBusy = false;
  };
  output.write(`${HELP}\n`);
  begin();
  for await (const line of prompt) {
    if (statement === '' && LEAVE.test(line)) break;
    const command = statement === '' ? COMMAND.exec(line)?.groups : undefined;
    if (statement === '' && HELP_WORDS.test(line)) output.write(`${HELP}\n`);
    else if (command !== undefined) {
      const sql = sqlOf(command);
      if (sql === undefined) onError(`There is no command ${line.trim()}: .help shows what there is.`);
      else await run(sql);
    } else {
      statement = statement === '' ? line : `${statement}\n${line}`;
      const completeness = await completenessOf(connection, statement);
      if (completeness === 'complete') await run(statement);
      if (completeness !== 'open') statement = '';
    }
    begin();
  }
  prompt.close();
  output.write('\n');
}
