import type { Json } from '@duckdb/node-api';
import type { Cell } from 'write-excel-file/node';
import { StorageError } from '../errors.js';
import { thousands } from '../format/numbers.js';
import { valueText } from '../format/text.js';
import type { Answer, AnswerColumn } from './answer.js';
import { jsonValue } from './formats.js';

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
