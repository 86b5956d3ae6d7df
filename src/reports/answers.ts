import { z } from 'zod';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import type { Parameters, Reader } from '../warehouse/query.js';
import type { Query } from './definition.js';

const rowSchema = z.record(z.string(), z.json());
export type Row = z.infer<typeof rowSchema>;

/** The result of each query of a report: its single row, or all rows. */
export type Answers = Readonly<Record<string, Row | Row[]>>;

/** Runs the queries of a report. An error names the file of its query. */
export async function ask(
  reader: Reader,
  queries: readonly Query[],
  parameters: Parameters,
): Promise<Answers> {
  const answers: Record<string, Row | Row[]> = {};
  for (const query of queries) answers[query.name] = await askOne(reader, query, parameters);
  return answers;
}

async function askOne(
  reader: Reader,
  { name, file, sql, rows }: Query,
  parameters: Parameters,
): Promise<Row | Row[]> {
  const found = await reader.query(sql, rowSchema, parameters).catch((cause: unknown) => {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(`${file}: ${problemOf(cause)}`, { cause });
  });
  if (rows === 'many') return found;
  const [only, ...more] = found;
  if (only !== undefined && more.length === 0) return only;
  throw new ConfigurationError(
    `${file}: returned ${found.length} rows, but report.yaml expects one; if it can return several, write ${name}: many`,
  );
}

/** The rows of a query, whether it returns one or many. */
export const rowsOf = (answers: Answers, query: string): Row[] => [answers[query] ?? []].flat();
