import type { DuckDBConnection } from '@duckdb/node-api';
import { type AsyncCompleter, createInterface } from 'node:readline';
import { z } from 'zod';
import { messageOf } from '../errors.js';
import { completenessOf } from './answer.js';

const LEAVE = /^\s*[.\\]?(exit|quit|q)\s*;?\s*$/i;
const HELP_WORDS = /^\s*[.\\]?(help|h|\?)\s*;?\s*$/i;

const HELP = `End a statement with a semicolon. Tab completes, Ctrl-C stops a query, exit or Ctrl-D leaves.
To see what there is: SHOW TABLES;   DESCRIBE site_weeks;`;

export interface PromptOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly connection: DuckDBConnection;
  /** Runs a statement; its rejection is passed to `onError`, and the prompt continues. */
  readonly answer: (sql: string) => Promise<void>;
  readonly onError: (message: string) => void;
}

/** A simple prompt for multi-line statements, until Ctrl-D. */
export async function runPrompt({
  input,
  output,
  connection,
  answer,
  onError,
}: PromptOptions): Promise<void> {
  let statement = '';
  let isBusy = false;
  const prompt = createInterface({
    ...{ input, output, prompt: 'sql> ' },
    completer: completerOf(connection, () => statement),
  });
  const begin = () => {
    prompt.setPrompt(statement === '' ? 'sql> ' : '  -> ');
    prompt.prompt();
  };
  prompt.on('SIGINT', () => {
    if (isBusy) connection.interrupt();
    else {
      statement = '';
      output.write('\n');
      begin();
    }
  });
  output.write(`${HELP}\n`);
  begin();
  for await (const line of prompt) {
    if (statement === '' && LEAVE.test(line)) break;
    if (statement === '' && HELP_WORDS.test(line)) {
      output.write(`${HELP}\n`);
      begin();
      continue;
    }
    statement = statement === '' ? line : `${statement}\n${line}`;
    const completeness = await completenessOf(connection, statement);
    if (completeness === 'complete') {
      isBusy = true;
      await answer(statement).catch((error: unknown) => {
        onError(messageOf(error));
      });
      isBusy = false;
    }
    if (completeness !== 'open') statement = '';
    begin();
  }
  prompt.close();
  output.write('\n');
}

const suggestionsSchema = z.array(z.tuple([z.string(), z.int()]));

/** Completes a line with DuckDB's suggestions, given the lines before it. */
const completerOf =
  (connection: DuckDBConnection, before: () => string): AsyncCompleter =>
  (line, callback) => {
    const sql = before() === '' ? line : `${before()}\n${line}`;
    const query = 'SELECT suggestion, suggestion_start FROM sql_auto_complete($sql)';
    connection
      .runAndReadAll(query, { sql })
      .then((reader) => suggestionsSchema.parse(reader.getRowsJson()))
      .then((suggestions) => {
        const start = Math.max(0, (suggestions[0]?.[1] ?? 0) - (sql.length - line.length));
        callback(null, [suggestions.map(([text]) => text), line.slice(start)]);
      })
      // A line that cannot be completed stays as it is.
      .catch(() => {
        callback(null, [[], line]);
      });
  };
