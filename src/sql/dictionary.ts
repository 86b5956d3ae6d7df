import { z } from 'zod';
import { type Reader, readSql } from '../warehouse/query.js';

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

/** SQL that lists the tables, views and macros. */
export const TABLES = `SELECT name, kind, comment FROM (${DICTIONARY})`;

/** SQL that lists the columns of one table or view, or of all; a macro has one row, without a column. */
export const schemaOf = (name: string): string => `
SELECT name, part.name AS "column", part.type, part.comment
FROM (SELECT name, unnest(if(columns = [], [{name: '', type: '', comment: comment}], columns)) AS part FROM (${DICTIONARY}))
WHERE '${name.replaceAll("'", "''")}' IN ('', split_part(name, '(', 1))`;

/** What a query that only reads is made of. */
const KEYWORDS =
  'SELECT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT OFFSET WITH AS JOIN LEFT RIGHT FULL INNER CROSS SEMI ANTI ON USING UNION ALL EXCEPT INTERSECT DISTINCT CASE WHEN THEN ELSE END AND OR NOT IN IS NULL BETWEEN LIKE ILIKE EXISTS ASC DESC NULLS FIRST LAST OVER PARTITION WINDOW FILTER VALUES UNNEST INTERVAL CURRENT_DATE TRUE FALSE CAST DESCRIBE SUMMARIZE SHOW TABLES EXPLAIN PIVOT UNPIVOT count( sum( avg( min( max( median( round( coalesce( nullif( date_trunc( date_diff( row_number( starts_with( contains( split_part( lower( greatest( least('.split(
    ' ',
  );

/** Everything that can be completed, in the order in which it is suggested. */
export const completable = (dictionary: readonly DictionaryEntry[]): string[] => [
  ...new Set([
    ...dictionary.map(({ name }) => name),
    ...dictionary.flatMap(({ columns }) => columns.map(({ name }) => name)),
    ...KEYWORDS,
  ]),
];

/** The unfinished name at the end of some SQL, and what it may become. */
export function completionsOf(names: readonly string[], sql: string): { word: string; found: string[] } {
  const word = /\w*$/.exec(sql)?.[0] ?? '';
  const begin = word.toLowerCase();
  const found = begin === '' ? [] : names.filter((name) => name.toLowerCase().startsWith(begin));
  // A macro is called with values, so its parameters are left to type.
  return { word, found: found.map((name) => name.replace(/\(.*/, '(')) };
}
