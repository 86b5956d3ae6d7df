import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { packageFile } from '../files.js';
import type { Cut } from '../sql/apart.js';
import type { Reader } from '../warehouse/query.js';
import type { Asking } from './asked.js';
import { drawLines } from './lines.js';
import { BusyError, LONGEST_MS } from './questions.js';

const CUT: Cut = { maxRows: 1_000, maxCharacters: 1_000_000 };

const columnsSchema = z.array(z.record(z.string(), z.json()));
type Answer = z.infer<typeof columnsSchema>;

/** SQL over the history: the answer as a table and a picture, the data dictionary, and questions to begin with. */
export async function ask({ asked, rows, questions, saved, visitor, signal }: Asking): Promise<object> {
  const [dictionary, examples, names] = await Promise.all([
    rows('dictionary'),
    questionsOfDocs(),
    saved.names(),
  ]);
  const sql = await saved.sqlOf(asked);
  const shown = {
    sql,
    name: asked.name,
    names,
    visitor,
    dictionary,
    examples,
    longestSeconds: LONGEST_MS / 1000,
  };
  if (sql.trim() === '') return { ...shown, answer: null, failure: null };
  try {
    const { rows: answered, isCut, note = null } = await questions.answer(sql, signal, CUT);
    const answer = columnsSchema.parse(answered);
    const columns = Object.keys(answer[0] ?? {}).map((name) => ({
      name,
      isNumeric: answer.some((row) => typeof row[name] === 'number'),
    }));
    const cells = answer.map((row) =>
      columns.map((column) => ({ ...column, text: textOf(row[column.name] ?? null) })),
    );
    return {
      ...shown,
      failure: null,
      answer: { columns, cells, isCut, note, ...pictureOf(answer, columns) },
    };
  } catch (error) {
    if (error instanceof BusyError || !(error instanceof StorageError)) throw error;
    return { ...shown, answer: null, failure: error.message };
  }
}

const textOf = (value: Answer[number][string]): string =>
  value === null
    ? ''
    : typeof value === 'number'
      ? value.toLocaleString('en-US', { maximumFractionDigits: 4, useGrouping: Math.abs(value) >= 10_000 })
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);

const MOST_LINES = 4;

/** The day that a value names; empty for any other value. */
const dayIn = (row: Answer[number], name: string): string =>
  /^\d{4}-\d\d-\d\d/.exec(textOf(row[name] ?? null))?.[0] ?? '';

/** Lines over days, where the answer is one row a day, week or month; bars where it is a short list of names. */
function pictureOf(answer: Answer, columns: readonly { name: string; isNumeric: boolean }[]) {
  const numberIn = (row: Answer[number], name: string) => (typeof row[name] === 'number' ? row[name] : null);
  const days = columns.find(({ name }) => answer.every((row) => dayIn(row, name) !== ''))?.name ?? '';
  const mostIn = (name: string) => Math.max(...answer.map((row) => numberIn(row, name) ?? 0));
  const numeric = columns.filter(({ isNumeric }) => isNumeric);
  // A share beside thousands of views would lie flat on the axis.
  const least = Math.max(...numeric.map(({ name }) => mostIn(name))) / 100;
  const numbers = numeric
    .filter(({ name }) => mostIn(name) >= least)
    .slice(0, MOST_LINES)
    .map(({ name }, index) => ({ name, key: ['human', 'ai'].includes(name) ? name : `series-${index}` }));
  const isSeries = new Set(answer.map((row) => dayIn(row, days))).size === answer.length;
  if (days !== '' && numbers.length > 0 && answer.length > 2 && isSeries) {
    const ordered = answer.toSorted((one, two) => (dayIn(one, days) < dayIn(two, days) ? -1 : 1));
    const points = ordered.map((row) => ({
      label: dayIn(row, days),
      isMarked: false,
      values: Object.fromEntries(numbers.map(({ name, key }) => [key, numberIn(row, name)])),
      said: [dayIn(row, days), ...numbers.map(({ name }) => `${name} ${textOf(row[name] ?? null)}`)],
    }));
    const lines = numbers.map(({ key }) => key);
    return { picture: drawLines(points, { title: 'The answer', lines }), keys: numbers, bars: null };
  }
  const [label] = columns.filter(({ isNumeric }) => !isNumeric);
  const [number] = numbers;
  if (label === undefined || number === undefined || answer.length > 25 || answer.length < 2)
    return { picture: null, keys: [], bars: null };
  const values = answer.map((row) => numberIn(row, number.name) ?? 0);
  const longest = Math.max(...values);
  const bars = answer.map((row, index) => ({
    label: textOf(row[label.name] ?? null),
    value: Math.max(0, values[index] ?? 0),
    longest,
  }));
  return { picture: null, keys: [], bars: { name: number.name, of: label.name, rows: bars } };
}

let documented: Promise<{ title: string; sql: string }[]> | undefined;

/** The questions of the documentation, with their SQL. */
function questionsOfDocs(): Promise<{ title: string; sql: string }[]> {
  documented ??= readFile(packageFile('docs/questions.md'), 'utf8').then((text) =>
    [...text.matchAll(/^### (.+)\n\n(?:(?!###)[^`])*```sql\n([^]+?)```/gm)].map(
      ([, title = '', sql = '']) => ({ title, sql: sql.trim() }),
    ),
  );
  return documented;
}

const suggestionRow = z.object({ suggestion: z.string(), suggestion_start: z.int() });

/** What DuckDB suggests at the end of some SQL. */
export const completions = async (reader: Reader, sql: string): Promise<z.infer<typeof suggestionRow>[]> => {
  const query = 'SELECT suggestion, suggestion_start FROM sql_auto_complete($sql) LIMIT 8';
  return reader.query(query, suggestionRow, { sql }).catch(() => []);
};
