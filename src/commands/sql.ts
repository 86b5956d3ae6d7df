import { type Command, Option } from 'commander';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { secretNames } from '../app/secrets.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf, ReadershipError, StorageError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { ask } from '../sql/answer.js';
import { formatAnswer, TEXT_FORMATS, type TextFormat } from '../sql/formats.js';
import { removeTempFiles, runWithout, settingsFor, type SqlLimits, tooMuch, watched } from '../sql/limits.js';
import { runPrompt } from '../sql/prompt.js';
import { OutputFile, writeParquet, writePieces, writeText } from '../sql/write.js';
import type { Output } from '../terminal/output.js';
import { type History, openHistory } from '../warehouse/published.js';
import { type Act, durationArgument, formatOf, withWorkspaceOptions } from './options.js';

/** Maximum rows of a table on a terminal. */
const MAX_TABLE_ROWS = 200;

/** Formats that a terminal cannot show. */
const FILE_FORMATS = ['parquet', 'xlsx'] as const;

interface SqlOptions extends WorkspaceOptions {
  readonly file?: string;
  readonly format?: TextFormat | (typeof FILE_FORMATS)[number];
  readonly output?: string;
  readonly timeout?: number;
}

const FORMAT_OF: Readonly<Record<string, NonNullable<SqlOptions['format']>>> = {
  ...{ '': 'csv', '.csv': 'csv', '.json': 'json', '.ndjson': 'ndjson', '.jsonl': 'ndjson' },
  ...{ '.md': 'markdown', '.txt': 'table', '.parquet': 'parquet', '.xlsx': 'xlsx' },
};

const NAMES = 'use a name that ends in .csv, .json, .ndjson, .md, .txt, .parquet or .xlsx, or set --format.';

export function declareSql(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('sql'))
    .summary('run SQL over the whole history')
    .description(
      'Runs SQL over the published history, without waiting for exports or delaying them. It runs only read-only statements, which cannot access files, the network, settings or secrets. The query is the argument, a file, or standard input; without one, a terminal gets a prompt.',
    )
    .argument('[query]', 'the SQL to run')
    .option('--file <file>', 'read the query from a file')
    .addOption(
      new Option(
        '--format <format>',
        'output format (default: from the name of --output; without it, table on a terminal, else csv)',
      ).choices([...TEXT_FORMATS, ...FILE_FORMATS]),
    )
    .option('--output <file>', 'write the result to a file')
    .addOption(
      new Option(
        '--timeout <time>',
        'stop a query that takes longer, such as 30s or 10m (default: sql.timeout, 5m)',
      ).argParser(durationArgument),
    )
    .addHelpText(
      'after',
      `
Tables and views: page_views, day_loads, restatements, site_days, site_weeks, page_weeks, jobs, job_effects, project_effects, deliveries, data_quality
Macros: top_pages(first_day, last_day), page_history(page), human_vs_ai(first_day, last_day, grain), movers(week_start), usual_range(week_start), people_leaving(before_day), dropped_days(last_day)
Meaning of columns: FROM duckdb_columns() SELECT table_name, column_name, comment (docs/data.md; questions: docs/questions.md)

Examples:
  readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"
  readership sql "FROM human_vs_ai('2026-01-01', '2026-12-31', 'month')" --format markdown
  readership sql --file questions/top.sql --output top.csv
  readership sql "FROM page_views" --output views.parquet
  readership sql "FROM site_weeks" --output weeks.xlsx      for Excel
  echo "FROM data_quality" | readership sql --sandbox`,
    )
    .action((query: string | undefined, options: SqlOptions) =>
      act((runtime) => sql(query, options, runtime)),
    );
}

async function sql(query: string | undefined, options: SqlOptions, runtime: Runtime): Promise<ExitCode> {
  const { settings, configuration, historyFile } = await readWorkspace(options, runtime, false);
  const secrets = secretNames(runtime.environment, configuration?.settings);
  if (secrets.length > 0) return codeOf(await runWithout(secrets, runtime.signal));
  const target = options.output === undefined ? undefined : resolve(runtime.workingDirectory, options.output);
  const format =
    options.format ?? (options.output === undefined ? undefined : formatOf(options.output, FORMAT_OF, NAMES));
  if (isOfFiles(format) && target === undefined)
    throw new ConfigurationError(`The format ${format} is only for files: add --output FILE.`);
  const statement = await readQuery(query, options.file, runtime);
  const limits = { ...settings.sql, timeoutMs: options.timeout ?? settings.sql.timeout };
  const duckdb = await settingsFor(limits);
  const file = target === undefined ? undefined : await OutputFile.create(target);
  try {
    const writable = format === 'parquet' ? file?.unfinished : undefined;
    const history = await openHistory(historyFile, writable, duckdb);
    const session = { history, limits, file, format, output: runtime.output, duckdb };
    try {
      await runQueries(statement, session, runtime.signal);
    } finally {
      history.close();
    }
  } finally {
    await file?.close();
    removeTempFiles(duckdb);
  }
  return 0;
}

const isOfFiles = (format: SqlOptions['format']): format is (typeof FILE_FORMATS)[number] =>
  FILE_FORMATS.some((name) => name === format);

const codeOf = (code: number): ExitCode => ([0, 2, 75] as const).find((known) => known === code) ?? 1;

interface Session {
  readonly history: History;
  readonly limits: SqlLimits;
  readonly duckdb: Awaited<ReturnType<typeof settingsFor>>;
  readonly file: OutputFile | undefined;
  readonly format: SqlOptions['format'];
  readonly output: Output;
}

/** Runs the statement, or statements typed at a prompt. */
async function runQueries(
  statement: string | undefined,
  session: Session,
  signal: AbortSignal,
): Promise<void> {
  const { connection } = session.history;
  const interrupt = () => {
    connection.interrupt();
  };
  signal.throwIfAborted();
  signal.addEventListener('abort', interrupt, { once: true });
  if (statement !== undefined) return answerWithin(statement, session);
  const { stdin: input, stdout: output } = process;
  const answer = (text: string) => answerWithin(text, session);
  await runPrompt({
    input,
    output,
    connection,
    answer,
    onError: (text) => {
      session.output.note(text);
    },
  });
}

/** Runs SQL, or stops it at its limits. */
async function answerWithin(statement: string, session: Session): Promise<void> {
  const { history, limits, output } = session;
  const interrupt = () => {
    history.connection.interrupt();
  };
  const endProcess = (reason: string) => {
    output.note(`The query failed. ${reason} It cannot be interrupted, so its process ends.`);
    removeTempFiles(session.duckdb);
    // A normal exit would wait for the query.
    process.kill(process.pid, 'SIGKILL');
  };
  try {
    await watched(() => answer(statement, session), interrupt, limits, endProcess);
  } catch (error) {
    const cause = history.explained(error);
    if (cause instanceof ReadershipError) throw cause;
    const why = messageOf(cause)
      .replace('Failed to extract statements: ', '')
      .replace(/^INTERRUPT Error.*/s, 'It was stopped.')
      .replace(/^Out of Memory Error.*/s, tooMuch(limits));
    throw new StorageError(`The query failed. ${why}`, { cause });
  }
}

async function answer(
  statement: string,
  { history: { connection }, file, format, output }: Session,
): Promise<void> {
  if (format === 'parquet' && file !== undefined) {
    await writeParquet(connection, statement, file);
    return;
  }
  const answer = await ask(connection, statement);
  if (answer === undefined) throw new ConfigurationError('There is no SQL statement in the query.');
  if (answer.unseen > 0)
    output.note(
      `This is the last of ${counted(answer.unseen + 1, 'result')}: run one statement at a time to see them all.`,
    );
  if (format === 'xlsx' && file !== undefined) {
    const { workbookOf } = await import('../sql/xlsx.js');
    await writePieces(workbookOf(answer), file);
    return;
  }
  const isTerminal = output.isTerminal && file === undefined;
  const chosen = format === undefined || isOfFiles(format) ? (isTerminal ? 'table' : 'csv') : format;
  const [width, maxRows] = file === undefined ? [output.width, MAX_TABLE_ROWS] : [Infinity, Infinity];
  await writeText(
    formatAnswer(answer, chosen, { colors: output.colors, width, maxRows, isTerminal }),
    file,
    output,
  );
}

/** The query to run: the argument, a file, or piped in. Undefined on a terminal without one. */
async function readQuery(
  argument: string | undefined,
  file: string | undefined,
  { workingDirectory }: Runtime,
): Promise<string | undefined> {
  if (argument !== undefined && file !== undefined)
    throw new ConfigurationError('Give the query as an argument or with --file, not both.');
  if (argument !== undefined) return argument;
  if (file !== undefined) return readQueryFile(resolve(workingDirectory, file));
  if (process.stdin.isTTY) return undefined;
  const piped = await readAll(process.stdin);
  if (piped.trim() === '')
    throw new ConfigurationError(
      'No query. Try: readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"',
    );
  return piped;
}

async function readQueryFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError(`Cannot read the query from ${path}: ${messageOf(cause)}`, { cause });
  }
}
