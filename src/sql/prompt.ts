import { appendFile, readFile } from 'node:fs/promises';
import { createInterface, type Interface } from 'node:readline';
import { messageOf } from '../errors.js';
import { standingOf } from './standing.js';

const MAX_REMEMBERED = 500;

const LEAVE = /^\s*[.\\]?(exit|quit|q)\s*;?\s*$/i;
const HELP_WORDS = /^\s*[.\\]?(help|h|\?)\s*;?\s*$/i;

const HELP = `End a statement with a semicolon. Ctrl-C stops a query, exit or Ctrl-D leaves.
What there is: SHOW TABLES;   DESCRIBE site_weeks;`;

export interface PromptOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Where statements are remembered between sessions. */
  readonly historyFile: string;
  /** Answers a statement; its rejection is shown, and the prompt goes on. */
  readonly answer: (sql: string) => Promise<void>;
  /** Stops the statement under way. */
  readonly interrupt: () => void;
}

/** A simple prompt: statements of any number of lines, remembered between sessions, until Ctrl-D. */
export async function runPrompt({
  input,
  output,
  historyFile,
  answer,
  interrupt,
}: PromptOptions): Promise<void> {
  const history = await readHistory(historyFile);
  const prompt = createInterface({ input, output, history, historySize: MAX_REMEMBERED, prompt: 'sql> ' });
  let statement = '';
  let isBusy = false;

  prompt.on('SIGINT', () => {
    if (isBusy) interrupt();
    else {
      statement = '';
      output.write('\n');
      begin(prompt, statement);
    }
  });
  output.write(`${HELP}\n`);
  begin(prompt, statement);
  for await (const line of prompt) {
    if (statement === '' && LEAVE.test(line)) break;
    if (statement === '' && HELP_WORDS.test(line)) {
      output.write(`${HELP}\n`);
      begin(prompt, statement);
      continue;
    }
    statement = statement === '' ? line : `${statement}\n${line}`;
    const standing = standingOf(statement);
    if (standing === 'complete') {
      isBusy = true;
      await remember(historyFile, statement);
      try {
        await answer(statement);
      } catch (error) {
        output.write(`${messageOf(error)}\n`);
      }
      isBusy = false;
      statement = '';
    } else if (standing === 'blank') statement = '';
    begin(prompt, statement);
  }
  prompt.close();
  output.write('\n');
}

function begin(prompt: Interface, statement: string): void {
  prompt.setPrompt(statement === '' ? 'sql> ' : '  -> ');
  prompt.prompt();
}

/** Newest first, as readline wants it. Each line of the file is a statement, its line feeds as spaces. */
async function readHistory(file: string): Promise<string[]> {
  try {
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
    return lines.slice(-MAX_REMEMBERED).reverse();
  } catch {
    // Nothing remembered yet, or not readable: a prompt without a past.
    return [];
  }
}

async function remember(file: string, statement: string): Promise<void> {
  const line = statement.replaceAll(/\s*\n\s*/g, ' ');
  // A comment up to the end of its line would swallow what followed it.
  if (standingOf(line) !== 'complete') return;
  try {
    await appendFile(file, `${line}\n`, { mode: 0o600 });
  } catch {
    // A read-only directory: the prompt works all the same.
  }
}
