import { z } from 'zod';
import { ConfigurationError, ReadershipError } from '../errors.js';
import type { Parameters, Reader } from '../warehouse/query.js';
import type { Query } from './catalog.js';
import { faultOf } from './fault.js';

const rowSchema = z.record(z.string(), z.json());

export type Row = z.infer<typeof rowSchema>;

/** What each query of a report answered: its one row, or all of them. */
export type Answers = Readonly<Record<string, Row | Row[]>>;

/** Asks every query of a report, one after the other. An error names the query's file. */
export async function answer(
  reader: Reader,
  queries: readonly Query[],
  parameters: Parameters,
): Promise<Answers> {
  const answers: Record<string, Row | Row[]> = {};
  for (const query of queries) answers[query.name] = await ask(reader, query, parameters);
  return answers;
}

async function ask(reader: Reader, { file, sql, rows }: Query, parameters: Parameters): Promise<Row | Row[]> {
  const found = await reader.query(sql, rowSchema, parameters).catch((cause: unknown) => {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(`${file}: ${faultOf(cause)}`, { cause });
  });
  if (rows === 'many') return found;
  const [only, ...more] = found;
  if (only === undefined || more.length > 0) {
    throw new ConfigurationError(
      `${file}: gave ${found.length} rows, and report.yaml says that it gives one`,
    );
  }
  return only;
}
