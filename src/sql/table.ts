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
}

/** Rows beyond these are counted, not shown. */
const MAX_ROWS = 200;

/** A column is not made narrower than this, padding included. */
const MIN_COLUMN = 8;

/** An answer as a table for people that fits the terminal: long cells are cut, rows beyond the first ones counted. */
export async function* tableText(answer: Answer, { colors, width }: TableStyle): AsyncGenerator<string> {
  const { columns } = answer;
  const rows: (readonly Json[])[] = [];
  let count = 0;
  for await (const batch of answer.batches) {
    rows.push(...batch.slice(0, MAX_ROWS - rows.length));
    count += batch.length;
  }
  const cells = rows.map((row) => columns.map((column, index) => cellText(row[index] ?? null, column)));
  const names = columns.map(({ name }) => plainText(name));
  const table = new Table({
    head: names.map((name) => colors.bold(name)),
    style: { head: [], border: [], compact: true },
    colAligns: columns.map(({ isNumeric }) => (isNumeric ? 'right' : 'left')),
    colWidths: fitWidths([names, ...cells], width),
  });
  table.push(...cells);
  const total = count === 1 ? '1 row' : `${count.toLocaleString('en-US')} rows`;
  yield `${table.toString()}\n${colors.dim(count > MAX_ROWS ? `${total}, the first ${MAX_ROWS} shown` : total)}\n`;
}

const cellText = (value: Json, column: AnswerColumn): string => plainText(shortText(value, column));

/** Widths of the columns, the widest narrowed until the whole fits. */
function fitWidths(rows: readonly (readonly string[])[], width: number): number[] {
  const columns = rows[0]?.length ?? 0;
  const widths = Array.from({ length: columns }, (_, column) =>
    rows.reduce((widest, row) => Math.max(widest, (row[column]?.length ?? 0) + 2), 0),
  );
  const total = () => widths.reduce((sum, column) => sum + column + 1, 1);
  while (total() > width) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}
