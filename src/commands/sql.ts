import type { Command } from 'commander';
import { Option } from 'commander';
import { join, resolve } from 'node:path';
import { ConfigurationError, messageOf, ReadershipError, StorageError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { ask } from '../sql/answer.js';
import { formatAnswer, TEXT_FORMATS, type TextFormat } from '../sql/formats.js';
import { runPrompt } from '../sql/prompt.js';
import { writeParquet, writeText } from '../sql/write.js';
import { type History, openHistory } from '../warehouse/history.js';
import type { ExitCode } from './exit-code.js';
import { durationArgument, withWorkspaceOptions } from './options.js';
import { readQuery } from './read-query.js';
import type { Act, Runtime } from './runtime.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';

/** Rows of a table for people, on a terminal. */
const MAX_TABLE_ROWS = 200;

interface SqlOptions extends WorkspaceOptions {
  readonly file?: string;
  readonly format?: TextFormat | 'parquet';
  readonly output?: string;
  readonly timeout: number;
}

export function declareSql(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('sql'))
    .summary('ask SQL over the whole history')
    .description(
      'Asks SQL over the published history: never blocked by an export, and never in its way. Read only: no query can change it, or reach a file, the network or a setting. The query is the argument, a file, or what is piped in; without one, on a terminal, there is a prompt.',
    )
    .argument('[query]', 'the SQL to run')
    .option('--file <file>', 'read the query from a file')
    .addOption(
      new Option(
        '--format <format>',
        'how to write the answer (default: table on a terminal, else csv; parquet needs --output)',
      ).choices([...TEXT_FORMATS, 'parquet']),
    )
    .option('--output <file>', 'write the answer to a file')
    .addOption(
      new Option('--timeout <time>', 'stop a query that takes longer, such as 30s or 10m')
        .argParser(durationArgument)
        .default(300_000, '5m'),
    )
    .addHelpText(
      'after',
      `
Tables and views: page_views, day_loads, restatements, site_days, site_weeks, page_weeks, jobs, job_effects, deliveries, data_quality
Macros: top_pages(first_day, last_day), page_history(path), human_vs_ai(first_day, last_day, grain), movers(week_start)
What a column means: FROM duckdb_columns() SELECT table_name, column_name, comment (docs/data.md; questions: docs/questions.md)

Examples:
  readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"
  readership sql "FROM human_vs_ai('2026-01-01', '2026-12-31', 'month')" --format markdown
  readership sql --file questions/top.sql --output top.csv
  readership sql "FROM page_views" --format parquet --output views.parquet
  echo "FROM data_quality" | readership sql --sandbox`,
    )
    .action((query: string | undefined, options: SqlOptions) =>
      act((runtime) => sql(query, options, runtime)),
    );
}

async function sql(query: string | undefined, options: SqlOptions, runtime: Runtime): Promise<ExitCode> {
  const { historyFile, dataDir } = await readWorkspace(options, runtime);
  const target = options.output === undefined ? undefined : resolve(runtime.workingDirectory, options.output);
  if (options.format === 'parquet' && target === undefined)
    throw new ConfigurationError('Parquet is not for the terminal: name a file with --output.');
  const statement = await readQuery(query, options.file, runtime);
  const history = await openHistory(historyFile, options.format === 'parquet' ? target : undefined);
  const answer = (text: string) => answerWithin(history, text, target, options, runtime);
  const interrupt = () => {
    history.connection.interrupt();
  };
  runtime.signal.throwIfAborted();
  runtime.signal.addEventListener('abort', interrupt, { once: true });
  try {
    if (statement !== undefined) await answer(statement);
    else {
      const { stdin: input, stdout: output } = process;
      await runPrompt({ input, output, historyFile: join(dataDir, '.sql_history'), answer, interrupt });
    }
    return 0;
  } finally {
    history.close();
  }
}

/** Answers one text of SQL, or stops it when its time is over. */
async function answerWithin(
  history: History,
  statement: string,
  target: string | undefined,
  { format, timeout }: SqlOptions,
  { output }: Runtime,
): Promise<void> {
  const limit = AbortSignal.timeout(timeout);
  const stop = () => {
    history.connection.interrupt();
  };
  limit.addEventListener('abort', stop);
  try {
    if (format === 'parquet') await writeParquet(history.connection, statement, target ?? '');
    else {
      const answer = await ask(history.connection, statement);
      if (answer === undefined) throw new ConfigurationError('There is no SQL statement in the query.');
      const chosen = format ?? (output.isTerminal && target === undefined ? 'table' : 'csv');
      const { colors, width } = output;
      if (answer.unseen > 0)
        output.note(
          `Of ${counted(answer.unseen + 1, 'answer')}, this is the last: ask one question at a time to see them all.`,
        );
      const whole = { colors, width: Infinity, maxRows: Infinity, isTerminal: false };
      const style = target === undefined ? { colors, width, maxRows: MAX_TABLE_ROWS, isTerminal: output.isTerminal } : whole;
      await writeText(formatAnswer(answer, chosen, style), target, output);
    }
  } catch (error) {
    const cause = history.explained(error);
    if (cause instanceof ReadershipError) throw cause;
    const why = limit.aborted
      ? `It took longer than ${timeout / 1000} s (--timeout).`
      : messageOf(cause)
          .replace('Failed to extract statements: ', '')
          .replace(/^INTERRUPT Error.*/s, 'It was stopped.');
    throw new StorageError(`The query failed. ${why}`, { cause });
  } finally {
    limit.removeEventListener('abort', stop);
  }
}
