import type { Json } from '@duckdb/node-api';
import Table from 'cli-table3';
import type { Colors } from '../terminal/output.js';
import { plainText } from '../terminal/plain-text.js';
import type { Answer, AnswerColumn } from './answer.js';
import { shortText } from './cells.js';

/** What a table may use of the terminal. */
export interface TableStyle {
  readonly colors: Colors;
  readonly width: number;
  /** Rows beyond these are counted, not shown. */
  readonly maxRows: number;
}

/** A column is not made narrower than this, padding included. */
const MIN_COLUMN = 8;

/** An answer as a table for people that fits the terminal: long cells are cut, rows beyond the first ones counted. */
export async function* tableText(
  answer: Answer,
  { colors, width, maxRows }: TableStyle,
): AsyncGenerator<string> {
  const { columns } = answer;
  const rows: (readonly Json[])[] = [];
  let count = 0;
  for await (const batch of answer.batches) {
    rows.push(...batch.slice(0, maxRows - rows.length));
    count += batch.length;
  }
  const cells = rows.map((row) => columns.map((column, index) => cellText(row[index] ?? null, column)));
  const names = columns.map(({ name }) => plainText(name));
  const { widths, padding } = fitWidths(columns, [names, ...cells], width);
  const table = new Table({
    head: names.map((name) => colors.bold(name)),
    style: { head: [], border: [], compact: true, 'padding-left': padding - 1, 'padding-right': 1 },
    colAligns: columns.map(({ isNumeric }) => (isNumeric ? 'right' : 'left')),
    colWidths: widths,
  });
  table.push(...cells);
  const total = count === 1 ? '1 row' : `${count.toLocaleString('en-US')} rows`;
  yield `${table.toString()}\n${colors.dim(count > maxRows ? `${total}, the first ${maxRows} shown` : total)}\n`;
}

const cellText = (value: Json, column: AnswerColumn): string => plainText(shortText(value, column));

/** Widths of the columns, text before dates and numbers narrowed until the whole fits. */
function fitWidths(
  columns: readonly AnswerColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): { widths: number[]; padding: number } {
  const lengths = columns.map((_, column) =>
    rows.reduce((longest, row) => Math.max(longest, row[column]?.length ?? 0), 0),
  );
  const totalOf = (widths: readonly number[]) => widths.reduce((sum, column) => sum + column + 1, 1);
  const padded = (padding: number) => lengths.map((length) => length + padding);
  const padding = totalOf(padded(2)) <= width ? 2 : 1;
  const widths = padded(padding);
  for (const isCut of [({ isText }: AnswerColumn) => isText, () => true])
    while (totalOf(widths) > width) {
      const widest = Math.max(...widths.filter((_, index) => isCut(columns[index] ?? NO_COLUMN)), 0);
      if (widest <= MIN_COLUMN) break;
      const cut = widths.findIndex(
        (column, index) => column === widest && isCut(columns[index] ?? NO_COLUMN),
      );
      widths[cut] = widest - 1;
    }
  return { widths, padding };
}

const NO_COLUMN: AnswerColumn = { name: '', isNumeric: false, isText: false };
