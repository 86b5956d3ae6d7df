import type { DuckDBConnection } from '@duckdb/node-api';
import { createInterface } from 'node:readline';
import { messageOf } from '../errors.js';
import { completenessOf } from './answer.js';
import { completionsOf } from './dictionary.js';

const LEAVE = /^\s*[.\\]?(exit|quit|q)\s*;?\s*$/i;
const HELP_WORDS = /^\s*[.\\]?(help|h|\?)\s*;?\s*$/i;

const HELP = `End a statement with a semicolon. Tab completes, Ctrl-C stops a query, exit or Ctrl-D leaves.
To see what there is: SHOW TABLES;   DESCRIBE site_weeks;`;

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
