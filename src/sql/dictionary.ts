import { z } from 'zod';
import { readSql } from '../columns.js';
import type { Reader } from '../history/duckdb.js';

const DICTIONARY = readSql(import.meta.url, 'dictionary.sql');
const entryRow = z.object({
  name: z.string(),
  kind: z.enum(['view', 'macro', 'table']),
  comment: z.string(),
  columns: z.array(z.object({ name: z.string(), type: z.string(), comment: z.string() })),
});
/** A table, a view, or a macro with its parameters: `movers(week_start)`. */
export type DictionaryEntry = z.infer<typeof entryRow>;

/** The tables, views and macros of the history, the most useful first. */
export const readDictionary = (reader: Reader): Promise<DictionaryEntry[]> =>
  reader.query(DICTIONARY, entryRow);

/** SQL that lists the tables, views and macros, each with the first sentence about it. */
export const TABLES = `
SELECT split_part(name, '(', 1) AS name, kind, regexp_extract(comment, '^(.*?\\.)(?: |$)', 1) AS meaning
FROM (${DICTIONARY})`;

/** SQL that lists the columns of one table or view, or of all; a macro has one row, without a column. */
export const schemaOf = (name: string): string => `
SELECT name, part.name AS "column", part.type, part.comment
FROM (SELECT name, unnest(if(columns = [], [{name: '', type: '', comment: comment}], columns)) AS part FROM (${DICTIONARY}))
WHERE '${name.replaceAll("'", "''")}' IN ('', split_part(name, '(', 1))`;
