import type { DuckDBResultReader } from '@duckdb/node-api';
import type { Command } from 'commander';
import { Option } from 'commander';
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { ConfigurationError, messageOf, StorageError } from '../errors.js';
import { type History, openHistory } from '../warehouse/history.js';
import { type AnswerFormat, ANSWER_FORMATS, formatAnswer } from './answer-formats.js';
import type { ExitCode } from './exit-code.js';
import { withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from './runtime.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';

interface SqlOptions extends WorkspaceOptions {
  readonly file?: string;
  readonly format?: AnswerFormat;
  readonly output?: string;
}

export function declareSql(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('sql'))
    .summary('ask SQL over the whole history')
    .description(
      'Asks SQL over the published history: never blocked by an export, and never in its way. Read only: no query can change it or reach a file, the network or a setting. The query is the argument, a file, or what is piped in.',
    )
    .argument('[query]', 'the SQL to run')
    .option('--file <file>', 'read the query from a file')
    .addOption(
      new Option(
        '--format <format>',
        'how to write the answer (default: table on a terminal, csv into a pipe)',
      ).choices(ANSWER_FORMATS),
    )
    .option('--output <file>', 'write the answer to a file')
    .addHelpText(
      'after',
      `
Tables and views: page_views, day_loads, restatements, site_days, site_weeks, page_weeks, jobs, data_quality
Macros: top_pages(first_day, last_day), page_history(path), human_vs_ai(first_day, last_day, grain)
What a column means: DESCRIBE site_weeks, or FROM duckdb_columns()

Examples:
  readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"
  readership sql "FROM human_vs_ai('2026-01-01', '2026-12-31', 'month')" --format markdown
  readership sql --file questions/top.sql --format csv --output top.csv
  echo "FROM data_quality" | readership sql --sandbox`,
    )
    .action((query: string | undefined, options: SqlOptions) =>
      act((runtime) => sql(query, options, runtime)),
    );
}

async function sql(query: string | undefined, options: SqlOptions, runtime: Runtime): Promise<ExitCode> {
  const { historyFile } = await readWorkspace(options, runtime);
  const statement = await readQuery(query, options, runtime);
  const history = await openHistory(historyFile);
  try {
    const stop = () => {
      history.connection.interrupt();
    };
    runtime.signal.throwIfAborted();
    runtime.signal.addEventListener('abort', stop, { once: true });
    const answer = await ask(history, statement);
    const { isTerminal, colors } = runtime.output;
    const format = options.format ?? (isTerminal && options.output === undefined ? 'table' : 'csv');
    const text = formatAnswer(answer, format, colors);
    if (options.output !== undefined) await write(text, resolve(runtime.workingDirectory, options.output));
    else if (text !== '') runtime.output.data(text);
    return 0;
  } finally {
    history.close();
  }
}

async function ask({ connection }: History, statement: string): Promise<DuckDBResultReader> {
  try {
    return await connection.runAndReadAll(statement);
  } catch (cause) {
    throw new StorageError(`The query failed. ${messageOf(cause)}`, { cause });
  }
}

async function write(text: string, path: string): Promise<void> {
  try {
    await writeFile(path, text === '' ? '' : `${text}\n`);
  } catch (cause) {
    throw new StorageError(`Cannot write the answer to ${path}: ${messageOf(cause)}`, { cause });
  }
}

async function readQuery(query: string | undefined, { file }: SqlOptions, runtime: Runtime): Promise<string> {
  if (query !== undefined && file !== undefined)
    throw new ConfigurationError('Give the query as an argument or with --file, not both.');
  if (query !== undefined) return query;
  if (file !== undefined) return readFileOrExplain(resolve(runtime.workingDirectory, file));
  const piped = process.stdin.isTTY ? '' : await readAll(process.stdin);
  if (piped.trim() === '')
    throw new ConfigurationError(
      'No query. Try: readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"',
    );
  return piped;
}

async function readFileOrExplain(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError(`Cannot read the query from ${path}: ${messageOf(cause)}`, { cause });
  }
}
