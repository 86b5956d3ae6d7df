import type { Json } from '@duckdb/node-api';
import { counted } from '../format/numbers.js';
import { csvCell, escapeUnsafe, valueText } from '../format/text.js';
import type { Colors } from '../terminal/output.js';
import type { Answer, AnswerColumn } from './answer.js';

/** Text formats; DuckDB itself writes `parquet`. */
export const TEXT_FORMATS = ['table', 'csv', 'json', 'ndjson', 'markdown'] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

export interface AnswerStyle {
  readonly colors: Colors;
  readonly width: number;
  /** Rows of a table beyond these are counted, not shown. */
  readonly maxRows: number;
  /** Whether the output is a terminal, where unsafe characters are escaped even in data formats. */
  readonly isTerminal: boolean;
}

/** A result as chunks of text. */
export function formatAnswer(answer: Answer, format: TextFormat, style: AnswerStyle): AsyncIterable<string> {
  const shown = style.isTerminal ? escapeUnsafe : (text: string) => text;
  const csv = (value: Json, column: AnswerColumn) => csvCell(shown(valueText(value)), column);
  switch (format) {
    case 'table':
      return tableText(answer, style);
    case 'csv':
      return lines(
        answer,
        [answer.columns.map(({ name }) => csvCell(shown(name), { isNumeric: false })).join(',')],
        (row) => eachCell(answer, row, csv).join(','),
      );
    case 'markdown':
      return lines(answer, markdownHead(answer.columns), (row) =>
        markdownLine(eachCell(answer, row, valueText)),
      );
    case 'ndjson':
      return lines(answer, [], (row) => shown(JSON.stringify(objectOf(answer, row))));
    case 'json':
      return jsonArray(answer, shown);
  }
}

async function* tableText(
  { columns, batches }: Answer,
  { colors, width, maxRows }: AnswerStyle,
): AsyncGenerator<string> {
  const rows: (readonly Json[])[] = [];
  let count = 0;
  for await (const batch of batches) {
    rows.push(...batch.slice(0, maxRows - rows.length));
    count += batch.length;
  }
  const heads = columns.map(({ name, isNumeric, isText }) => ({
    head: escapeUnsafe(name),
    align: isNumeric ? ('right' as const) : ('left' as const),
    shrinks: isText,
  }));
  const cells = rows.map((row) =>
    columns.map((column, index) => escapeUnsafe(shortText(row[index] ?? null, column))),
  );
  // Loaded on demand: the library that measures text takes longer to load than most queries take.
  const { alignedLines, legibleColumns } = await import('../terminal/table.js');
  const shown = legibleColumns(heads, cells, width);
  const only = <Cell>(row: readonly Cell[]) => row.filter((_, index) => shown.includes(index));
  const [head = '', ...body] = alignedLines(only(heads), cells.map(only), width);
  const notes = [
    counted(count, 'row'),
    ...(count > maxRows ? [`the first ${maxRows} shown`] : []),
    ...(shown.length < columns.length
      ? [`${shown.length} of ${columns.length} columns shown; another --format writes all`]
      : []),
  ];
  yield [colors.bold(head), ...body, colors.dim(notes.join(', ')), ''].join('\n');
}

/** Rows written at once: enough to be fast, and few enough that a string can hold their text. */
const SLICE = 64;

async function* lines(
  { batches }: Answer,
  head: readonly string[],
  line: (row: readonly Json[]) => string,
): AsyncGenerator<string> {
  if (head.length > 0) yield `${head.join('\n')}\n`;
  for await (const rows of batches)
    for (let at = 0; at < rows.length; at += SLICE)
      yield rows.slice(at, at + SLICE).reduce((text, row) => `${text}${line(row)}\n`, '');
}

async function* jsonArray(answer: Answer, shown: (text: string) => string): AsyncGenerator<string> {
  let separator = '[\n  ';
  for await (const rows of answer.batches)
    for (const row of rows) {
      yield separator + shown(JSON.stringify(objectOf(answer, row)));
      separator = ',\n  ';
    }
  yield separator.startsWith('[') ? '[]\n' : '\n]\n';
}

const eachCell = <Cell>(
  { columns }: Answer,
  row: readonly Json[],
  cell: (value: Json, column: AnswerColumn) => Cell,
): Cell[] => columns.map((column, index) => cell(row[index] ?? null, column));

const objectOf = (answer: Answer, row: readonly Json[]): Record<string, Json> =>
  Object.fromEntries(eachCell(answer, row, (value, column) => [column.name, jsonValue(value, column)]));

const markdownHead = (columns: readonly AnswerColumn[]): string[] => [
  markdownLine(columns.map(({ name }) => name)),
  `| ${columns.map(({ isNumeric }) => (isNumeric ? '---:' : '---')).join(' | ')} |`,
];

/** Doubles backslashes before adding escapes, so that the escapes stay unchanged. */
const markdownLine = (cells: readonly string[]): string =>
  `| ${cells.map((text) => escapeUnsafe(text.replaceAll('\\', '\\\\').replaceAll('|', '\\|'))).join(' | ')} |`;

/** A number with few decimals, but with every digit before the decimal point. */
function shortText(value: Json, { isNumeric }: AnswerColumn): string {
  if (!isNumeric || typeof value !== 'number' || Number.isInteger(value)) return valueText(value);
  return String(Number(Math.abs(value) < 1000 ? value.toPrecision(4) : value.toFixed(1)));
}

/** DECIMAL values arrive as text; they become JSON numbers if JavaScript can represent them exactly. */
export function jsonValue(value: Json, { isNumeric }: AnswerColumn): Json {
  if (!isNumeric || typeof value !== 'string') return value;
  const number = Number(value);
  return Number.isNaN(number) || (Number.isInteger(number) && !Number.isSafeInteger(number)) ? value : number;
}
