import type { DuckDBResultReader, Json } from '@duckdb/node-api';
import Table from 'cli-table3';
import { plainText, type Colors } from './output.js';

export const ANSWER_FORMATS = ['table', 'csv', 'json', 'ndjson', 'markdown'] as const;
export type AnswerFormat = (typeof ANSWER_FORMATS)[number];

/** Rows beyond these are counted, not shown, in a table for people. */
const MAX_TABLE_ROWS = 200;

/** Types whose values stand at the right of their column. */
const NUMERIC = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)/;

interface Answer {
  readonly names: readonly string[];
  readonly isNumeric: readonly boolean[];
  readonly rows: readonly (readonly Json[])[];
}

/** The rows of a result as text, without a line feed at the end. */
export function formatAnswer(reader: DuckDBResultReader, format: AnswerFormat, colors: Colors): string {
  const answer: Answer = {
    names: reader.deduplicatedColumnNames(),
    isNumeric: reader.columnTypes().map((type) => NUMERIC.test(type.toString())),
    rows: reader.getRowsJson(),
  };
  switch (format) {
    case 'table':
      return asTable(answer, colors);
    case 'csv':
      return [answer.names, ...answer.rows].map((row) => row.map(csvCell).join(',')).join('\n');
    case 'json':
      return JSON.stringify(asObjects(answer), null, 2);
    case 'ndjson':
      return asObjects(answer)
        .map((row) => JSON.stringify(row))
        .join('\n');
    case 'markdown':
      return asMarkdown(answer);
  }
}

function asTable({ names, isNumeric, rows }: Answer, { dim, bold }: Colors): string {
  const table = new Table({
    head: names.map((name) => bold(plainText(name))),
    style: { head: [], border: [], compact: true },
    colAligns: isNumeric.map((numeric) => (numeric ? 'right' : 'left')),
  });
  for (const row of rows.slice(0, MAX_TABLE_ROWS))
    table.push(row.map((value, column) => plainText(shown(value, isNumeric[column] === true))));
  const more = rows.length - MAX_TABLE_ROWS;
  const count = rows.length === 1 ? '1 row' : `${rows.length} rows`;
  return `${table.toString()}\n${dim(more > 0 ? `${count}, the first ${MAX_TABLE_ROWS} shown` : count)}`;
}

function asMarkdown({ names, isNumeric, rows }: Answer): string {
  const cell = (text: string) =>
    plainText(text).replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('\n', ' ');
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(names.map(cell)),
    line(isNumeric.map((numeric) => (numeric ? '---:' : '---'))),
    ...rows.map((row) => line(row.map((value) => cell(textOf(value))))),
  ].join('\n');
}

/** Whole numbers as JSON numbers where they can be held exactly. */
const asObjects = ({ names, isNumeric, rows }: Answer): Record<string, Json>[] =>
  rows.map((row) =>
    Object.fromEntries(
      names.map((name, column) => [name, numberOf(row[column] ?? null, isNumeric[column] === true)]),
    ),
  );

function numberOf(value: Json, isNumeric: boolean): Json {
  if (!isNumeric || typeof value !== 'string') return value;
  const number = Number(value);
  return Number.isInteger(number) && !Number.isSafeInteger(number)
    ? value
    : Number.isNaN(number)
      ? value
      : number;
}

const textOf = (value: Json): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);

/** As people read it: no long tails of digits. */
const shown = (value: Json, isNumeric: boolean): string =>
  isNumeric && typeof value === 'number' && !Number.isInteger(value)
    ? String(Number(value.toPrecision(4)))
    : textOf(value);

/** RFC 4180. */
function csvCell(value: Json): string {
  const text = textOf(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
