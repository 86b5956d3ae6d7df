import { problemOf } from '../config/problems.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { type Parameters, type Reader, type Row, rowSchema } from '../history/query.js';
import type { Query } from './definition.js';

/** The result of each query of a report: its single row, or all rows. */
export type QueryRows = Readonly<Record<string, Row | Row[]>>;

/** Runs the queries of a report. An error names the file of its query, and the line if DuckDB does. */
export async function runQueries(
  reader: Reader,
  queries: readonly Query[],
  parameters: Parameters,
): Promise<QueryRows> {
  const answers: Record<string, Row | Row[]> = {};
  for (const { name, file, sql, rows, columns = [] } of queries) {
    const found = await reader.query(sql, rowSchema, parameters).catch((cause: unknown) => {
      if (cause instanceof ReadershipError) throw cause;
      const [, problem, line] = /^(.*?)\n+LINE (\d+):/s.exec(problemOf(cause)) ?? [];
      const where = line === undefined ? `${file}: ${problemOf(cause)}` : `${file}:${line}  ${problem ?? ''}`;
      throw new ConfigurationError(where, { cause });
    });
    const [only] = found;
    const unknown = columns.find((column) => only !== undefined && !(column in only));
    if (unknown !== undefined)
      throw new ConfigurationError(
        `${file}: queries.${name}.columns names ${unknown}, but the columns are ${Object.keys(only ?? {}).join(', ')}`,
      );
    if (rows === 'many') answers[name] = found;
    else if (only !== undefined && found.length === 1) answers[name] = only;
    else
      throw new ConfigurationError(
        `${file}: returned ${found.length} rows, but report.yaml expects one; if it can return several, write ${name}: many`,
      );
  }
  return answers;
}

/** The rows of a query, whether it returns one or many. */
export const rowsOf = (answers: QueryRows, query: string): Row[] => [answers[query] ?? []].flat();
