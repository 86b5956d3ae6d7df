import type { Json } from '@duckdb/node-api';
import type { Cell } from 'write-excel-file/node';
import { StorageError } from '../errors.js';
import { counted, thousands } from '../format/numbers.js';
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

/** So many digits are the same after they have been a JavaScript number. */
const EXACT_DIGITS = 15;

/**
 * DECIMAL values arrive as text, and so do `Infinity`, `-Infinity` and `NaN`. They become JSON numbers if JavaScript can
 * represent them exactly; otherwise they stay text, as in all other formats.
 */
function jsonValue(value: Json, { isNumeric }: AnswerColumn): Json {
  if (!isNumeric || typeof value !== 'string') return value;
  const number = Number(value);
  if (!Number.isFinite(number)) return value;
  const isExact = Number.isInteger(number)
    ? Number.isSafeInteger(number)
    : value.replaceAll(/\D/g, '').replace(/^0+/, '').length <= EXACT_DIGITS;
  return isExact ? number : value;
}

/** What Excel can open, and how many cells fit in about 1 GB of memory while they are written. */
const MAX_ROWS = 1_048_576;
const MAX_COLUMNS = 16_384;
const MAX_TEXT = 32_767;
const MAX_CELLS = 2_000_000;

/** A result as an Excel workbook. Throws a `StorageError` if it is too large for one. */
export async function workbookOf({ columns, batches }: Answer): Promise<Buffer> {
  if (columns.length > MAX_COLUMNS) throw tooLarge(`${thousands(MAX_COLUMNS)} columns`);
  const sheet: Cell[][] = [columns.map(({ name }) => ({ value: textOf(name), fontWeight: 'bold' }))];
  for await (const rows of batches) {
    const count = sheet.length + rows.length;
    if (count > MAX_ROWS) throw tooLarge(`${thousands(MAX_ROWS - 1)} rows and their header`);
    if (count * columns.length > MAX_CELLS) throw tooLarge(`${thousands(MAX_CELLS)} cells`);
    for (const row of rows) sheet.push(columns.map((column, index) => cellOf(row[index] ?? null, column)));
  }
  const { default: writeExcelFile } = await import('write-excel-file/node');
  return writeExcelFile(sheet, {
    sheet: 'Answer',
    stickyRowsCount: 1,
    columns: columns.map(({ isText }) => ({ width: isText ? 40 : 14 })),
  }).toBuffer();
}

const tooLarge = (limit: string): StorageError =>
  new StorageError(
    `An Excel sheet holds at most ${limit}, and the result is larger. Query less, or write .csv or .parquet.`,
  );

const MOMENT = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?))?$/;
/** Excel treats 1900 as a leap year, so days before this one would be off by one. */
const FIRST_DAY = Date.UTC(1900, 2, 1);

function cellOf(value: Json, column: AnswerColumn): Cell {
  const exact = jsonValue(value, column);
  if (exact === null) return null;
  if (typeof exact === 'boolean' || (typeof exact === 'number' && Number.isFinite(exact)))
    return { value: exact };
  const text = valueText(exact);
  const [, day, time] = (column.isText ? null : MOMENT.exec(text)) ?? [];
  const at = new Date(`${day ?? ''}T${time ?? '00:00:00'}Z`);
  if (at.getTime() >= FIRST_DAY)
    return { value: at, format: time === undefined ? 'yyyy-mm-dd' : 'yyyy-mm-dd hh:mm:ss' };
  return { value: textOf(text) };
}

/** Text that XML can contain: other characters are escaped as Excel does, and so is what looks like an escape. */
function textOf(text: string): string {
  if (text.length > MAX_TEXT) throw tooLarge(`${thousands(MAX_TEXT)} characters in a cell`);
  return (
    text
      .replace(/_(?=x[0-9a-fA-F]{4}_)/g, '_x005F_')
      // eslint-disable-next-line no-control-regex
      .replace(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, (character) => {
        const code = character.charCodeAt(0).toString(16).toUpperCase();
        return `_x${code.padStart(4, '0')}_`;
      })
  );
}
