import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { secretNamesOfQueries } from '../app/secrets.js';
import { expectHistory, withState } from '../app/state.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { ConfigurationError, messageOf, ReadershipError, StorageError } from '../errors.js';
import { exists, formatOf, readText } from '../files.js';
import { counted } from '../format/numbers.js';
import { runSql } from '../sql/answer.js';
import { formatAnswer, TEXT_FORMATS, type TextFormat, workbookOf } from '../sql/formats.js';
import { queryLimits, runWithout, settingsFor, type SqlLimits, tooMuch, watched } from '../sql/limits.js';
import { runPrompt } from '../sql/prompt.js';
import { OutputFile, copyParquet, writeText } from '../sql/write.js';
import type { Output } from '../terminal/output.js';
import { type History, openHistory } from '../history/history.js';
import { openState } from '../state/open.js';
import { readTables } from '../state/copies.js';
import { aDuration, workspaceCommand, value } from './command.js';

/** Maximum rows of a table on a terminal. */
const MAX_TABLE_ROWS = 200;

type SqlFormat = TextFormat | 'parquet' | 'xlsx';

const FORMAT_OF: Readonly<Record<string, SqlFormat>> = {
  '': 'csv',
  '.csv': 'csv',
  '.json': 'json',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.md': 'markdown',
  '.txt': 'table',
  '.parquet': 'parquet',
  '.xlsx': 'xlsx',
};

const NAMES = 'use a name that ends in .csv, .json, .ndjson, .md, .txt, .parquet or .xlsx, or set --format.';

export const sql = workspaceCommand('sql', {
  summary: 'run SQL over the whole history',
  description:
    'Runs SQL over the history, without waiting for exports or delaying them. It runs only read-only statements, which cannot access files, the network, settings or secrets. The query is the argument, a file, or standard input; without one, a terminal gets a prompt.',
  arguments: [value<string | undefined>('[query]', 'the SQL to run')],
  options: {
    file: value('<file>', 'read the query from a file'),
    format: value<SqlFormat>(
      '<format>',
      'output format (default: from the name of --output; without it, table on a terminal, else csv)',
      { choices: [...TEXT_FORMATS, 'parquet', 'xlsx'] },
    ),
    output: value('<file>', 'write the result to a file'),
    timeout: value('<time>', 'stop a query that takes longer, such as 30s or 10m (default: 5m)', aDuration),
  },
  notes: `Tables and views: page_views, days, day_failures, restatements, site_days, site_weeks, page_weeks, jobs, job_effects, emails, data_quality
Macros: changes(first_day, last_day, days_earlier := …, months_earlier := …, per := 'page'), top_pages(first_day, last_day), page_history(path), page_addresses(path, first_day, last_day), human_vs_ai(first_day, last_day, grain), movers(week_start), usual_range(week_start), one_sided(first_day, last_day), dropped_days(last_day)
Meaning of columns: FROM duckdb_columns() SELECT table_name, column_name, comment WHERE comment IS NOT NULL (docs/data.md; questions: docs/questions.md)`,
  examples: `
  readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"
  readership sql "FROM movers('2026-11-09')" --format markdown
  readership sql --file questions/top.sql --output top.csv
  readership sql "FROM page_views" --output views.parquet
  readership sql "FROM site_weeks" --output weeks.xlsx      for Excel
  echo "FROM data_quality" | readership sql --sandbox`,
  run: async (options, runtime, query) => {
    const { signal, workingDirectory, output } = runtime;
    const workspace = await readWorkspace(options, runtime, 'none');
    const { configuration, historyFile, dataDir } = workspace;
    const secrets = secretNamesOfQueries(runtime.environment, configuration?.settings);
    if (secrets.length > 0) return runWithout(secrets, signal);
    const target = options.output === undefined ? undefined : resolve(workingDirectory, options.output);
    const isTable = target === undefined && output.isTerminal;
    const format = options.format ?? (isTable ? 'table' : formatOf(options.output ?? '', FORMAT_OF, NAMES));
    if ((format === 'parquet' || format === 'xlsx') && target === undefined)
      throw new ConfigurationError(`The format ${format} is only for files: add --output FILE.`);
    const statement = await readQuery(query, options.file, runtime);
    const limits = queryLimits(options.timeout);
    const { duckdb, removeTempFiles } = await settingsFor(limits);
    const file = target === undefined ? undefined : await OutputFile.create(target);
    try {
      const writable = format === 'parquet' ? file?.unfinished : undefined;
      if (!(await exists(historyFile)))
        await withState(workspace, (state) => expectHistory(workspace, state));
      const history = await openHistory(historyFile, { writable, limits: duckdb });
      await showState(history, dataDir);
      const session = { history, limits, removeTempFiles, file, format, output, signal };
      try {
        signal.throwIfAborted();
        const answer = (text: string) => answerWithin(text, session);
        if (statement !== undefined) await answer(statement);
        else {
          const streams = { input: process.stdin, output: process.stdout };
          const { connection } = history;
          await runPrompt({ ...streams, connection, answer, onError: output.note });
        }
      } finally {
        history.close();
      }
    } finally {
      await file?.close();
      removeTempFiles();
    }
    return 0;
  },
});

/** Queries see the state as it is now; a copy of the history alone has it as of when it was written. */
async function showState(history: History, dataDir: string): Promise<void> {
  const state = await openState(dataDir).catch(() => undefined);
  if (state === undefined) return;
  try {
    await history.show(readTables(state));
  } finally {
    state.close();
  }
}

interface SqlSession {
  readonly history: History;
  readonly limits: SqlLimits;
  readonly removeTempFiles: () => void;
  readonly file: OutputFile | undefined;
  readonly format: SqlFormat;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** Runs SQL, or stops it at its limits. */
async function answerWithin(statement: string, session: SqlSession): Promise<void> {
  const { history, limits, output } = session;
  const endProcess = (reason: string) => {
    output.note(`The query failed. ${reason} It cannot be interrupted, so its process ends.`);
    session.removeTempFiles();
    // A normal exit would wait for the query.
    process.kill(process.pid, 'SIGKILL');
  };
  try {
    await watched(
      () => answer(statement, session),
      () => history.connection.interrupt(),
      limits,
      endProcess,
      session.signal,
    );
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

async function answer(statement: string, session: SqlSession): Promise<void> {
  const { file, format, output } = session;
  const { connection } = session.history;
  if (format === 'parquet') return file && copyParquet(connection, statement, file);
  const answer = await runSql(connection, statement);
  if (answer === undefined) throw new ConfigurationError('There is no SQL statement in the query.');
  if (answer.unseen > 0)
    output.note(
      `This is the last of ${counted(answer.unseen + 1, 'result')}: run one statement at a time to see them all.`,
    );
  if (format === 'xlsx') {
    const workbook = await workbookOf(answer);
    return file?.replace((unfinished) => writeFile(unfinished, workbook));
  }
  const isTerminal = output.isTerminal && file === undefined;
  const [width, maxRows] = file === undefined ? [output.width, MAX_TABLE_ROWS] : [Infinity, Infinity];
  const style = { colors: output.colors, width, maxRows, isTerminal };
  await writeText(formatAnswer(answer, format, style), file, output);
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
  if (file !== undefined) {
    const path = resolve(workingDirectory, file);
    const query = await readText(path);
    if (query === undefined) throw new ConfigurationError(`There is no file ${path} to read the query from.`);
    return query;
  }
  if (process.stdin.isTTY) return undefined;
  const piped = await readAll(process.stdin);
  if (piped.trim() === '')
    throw new ConfigurationError(
      'No query. Try: readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"',
    );
  return piped;
}
