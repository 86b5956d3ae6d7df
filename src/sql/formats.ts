import type { Json } from '@duckdb/node-api';
import { plainLine } from '../terminal/plain-text.js';
import type { Answer, AnswerColumn } from './answer.js';
import { csvCell, jsonValue, textOf } from './cells.js';
import { tableText, type TableStyle } from './table.js';

/** Formats that are written as text; `parquet` is the database's own work. */
export const TEXT_FORMATS = ['table', 'csv', 'json', 'ndjson', 'markdown'] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

/** An answer as pieces of text, to be written one after another. */
export function formatAnswer(answer: Answer, format: TextFormat, style: TableStyle): AsyncIterable<string> {
  switch (format) {
    case 'table':
      return tableText(answer, style);
    case 'csv':
      return lines(answer, [answer.columns.map(({ name }) => csvCell(name, TEXT)).join(',')], (row) =>
        eachCell(answer, row, csvCell).join(','),
      );
    case 'markdown':
      return lines(answer, markdownHead(answer.columns), (row) =>
        markdownLine(eachCell(answer, row, (value) => textOf(value))),
      );
    case 'ndjson':
      return lines(answer, [], (row) => JSON.stringify(objectOf(answer, row)));
    case 'json':
      return jsonArray(answer);
  }
}

const TEXT: AnswerColumn = { name: '', isNumeric: false, isText: true };

async function* lines(
  { batches }: Answer,
  head: readonly string[],
  line: (row: readonly Json[]) => string,
): AsyncGenerator<string> {
  if (head.length > 0) yield `${head.join('\n')}\n`;
  for await (const rows of batches) yield `${rows.map(line).join('\n')}\n`;
}

async function* jsonArray(answer: Answer): AsyncGenerator<string> {
  let separator = '[\n  ';
  for await (const rows of answer.batches)
    for (const row of rows) {
      yield separator + JSON.stringify(objectOf(answer, row));
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

const markdownLine = (cells: readonly string[]): string =>
  `| ${cells.map((text) => plainLine(text).replaceAll('\\', '\\\\').replaceAll('|', '\\|')).join(' | ')} |`;
