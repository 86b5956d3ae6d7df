import type { DuckDBConnection, Json } from '@duckdb/node-api';
import { createWriteStream } from 'node:fs';
import { lstat, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf, StorageError } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { thousands } from '../format/numbers.js';
import { escapeMarkup, valueText } from '../format/text.js';
import { identifier, quoted } from '../warehouse/duckdb.js';
import { type Answer, type AnswerColumn, expectOneSelect, isOneSelect } from './answer.js';
import { jsonValue } from './formats.js';

/** Where text goes if no file is given. */
export interface TextSink {
  /** False if the sink is full; `drained` resolves when it accepts more. */
  readonly write: (text: string) => boolean;
  readonly drained: () => Promise<unknown>;
}

/**
 * A file that appears only when it is complete. It is written in a private directory next to the
 * target and then moved, so a planted link is never followed.
 */
export class OutputFile {
  readonly unfinished: string;

  private constructor(
    readonly path: string,
    private readonly directory: string,
  ) {
    this.unfinished = join(directory, basename(path));
  }

  /** Throws a `StorageError` if the file cannot be written or is not a regular file. */
  static async create(path: string): Promise<OutputFile> {
    try {
      await expectRegular(path);
      return new OutputFile(path, await mkdtemp(`${path}.unfinished-`));
    } catch (cause) {
      throw failure(path, cause);
    }
  }

  /** Writes it with `write`, and replaces the existing file. */
  async replace(write: (unfinished: string) => Promise<void>): Promise<void> {
    try {
      await write(this.unfinished);
      await expectRegular(this.path);
      await rename(this.unfinished, this.path);
    } catch (cause) {
      // Query errors have no system call.
      throw cause instanceof Error && 'syscall' in cause ? failure(this.path, cause) : cause;
    }
  }

  /** Removes the unfinished file. */
  close(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

async function expectRegular(path: string): Promise<void> {
  const stats = await lstat(path).catch(ignoreMissing);
  if (stats?.isSymbolicLink() === true)
    throw new StorageError(
      `Cannot write the result to ${path}: it is a symbolic link. Use its target instead.`,
    );
  if (stats?.isFile() === false)
    throw new StorageError(
      `Cannot write the result to ${path}: it is not a regular file. For a pipe or a device, omit --output and redirect.`,
    );
}

const failure = (path: string, cause: unknown): StorageError =>
  cause instanceof StorageError
    ? cause
    : new StorageError(`Cannot write the result to ${path}: ${messageOf(cause)}`, { cause });

/** Writes pieces as they come. */
export const writePieces = (pieces: AsyncIterable<string | Uint8Array>, file: OutputFile): Promise<void> =>
  file.replace((unfinished) => pipeline(Readable.from(pieces), createWriteStream(unfinished)));

/** Writes chunks of text as they arrive, respecting backpressure. */
export async function writeText(
  pieces: AsyncIterable<string>,
  file: OutputFile | undefined,
  sink: TextSink,
): Promise<void> {
  if (file !== undefined) await writePieces(pieces, file);
  else for await (const piece of pieces) if (!sink.write(piece)) await sink.drained();
}

/** Formats that DuckDB writes itself, many times faster than rows that pass through JavaScript. */
const COPIED = {
  parquet: 'FORMAT parquet, COMPRESSION zstd',
  csv: 'FORMAT csv, HEADER',
  json: 'FORMAT json, ARRAY true',
  ndjson: 'FORMAT json',
} as const;
type CopiedFormat = keyof typeof COPIED;
export const isCopied = (format: string | undefined): format is CopiedFormat =>
  format !== undefined && format in COPIED;

/**
 * Lets DuckDB write the result of a single statement. Its connection must be allowed to write the
 * unfinished file. Returns false, with nothing written, if DuckDB would write other text than
 * `formatAnswer`: for several statements, and for columns such as lists.
 */
export async function copyResult(
  connection: DuckDBConnection,
  sql: string,
  format: CopiedFormat,
  file: OutputFile,
): Promise<boolean> {
  const rows = await (format === 'parquet' ? wholeOf(connection, sql) : plainOf(connection, sql, format));
  if (rows === undefined) return false;
  await file.replace(async (unfinished) => {
    await connection.run(`COPY (${rows}\n) TO ${quoted(unfinished)} (${COPIED[format]})`);
  });
  return true;
}

const queryOf = (sql: string): string => sql.trim().replace(/;+$/, '');

async function wholeOf(connection: DuckDBConnection, sql: string): Promise<string> {
  await expectOneSelect(connection, sql);
  return queryOf(sql);
}

const LARGE_INTEGER = /^U?(BIG|HUGE)INT$/;
const PLAIN =
  /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BOOLEAN|VARCHAR|DATE|TIMESTAMP|FLOAT|DOUBLE|DECIMAL\(.*\))$/;

/** A query for the same rows, with text guarded and numbers exact, as `formatAnswer` writes them. */
async function plainOf(
  connection: DuckDBConnection,
  sql: string,
  format: Exclude<CopiedFormat, 'parquet'>,
): Promise<string | undefined> {
  if (!(await isOneSelect(connection, sql))) return undefined;
  const statement = await connection.prepare(queryOf(sql));
  const types = Array.from({ length: statement.columnCount }, (_, index) =>
    statement.columnType(index).toString(),
  );
  const names = types.map((_, index) => statement.columnName(index));
  statement.destroySync();
  if (types.some((type) => !PLAIN.test(type)) || new Set(names).size < names.length) return undefined;
  const values = types.map(
    (type, index) =>
      `${plainValue(`c${index}`, type, format)} AS ${identifier(titleOf(names[index] ?? '', format))}`,
  );
  const places = types.map((_, index) => `c${index}`);
  return `SELECT ${values.join()} FROM (${queryOf(sql)}\n) AS result(${places.join()})`;
}

const titleOf = (name: string, format: CopiedFormat): string =>
  format === 'csv' && /^[=+\-@\t\r]/.test(name) ? `'${name}` : name;

/** A spreadsheet runs text that begins like a formula, and JavaScript does not hold every number. */
function plainValue(column: string, type: string, format: 'csv' | 'json' | 'ndjson'): string {
  const isText = format === 'csv';
  if (isText && type === 'VARCHAR')
    return `if(regexp_matches(${column}, '^[=+@\t\r-]'), '''' || ${column}, ${column})`;
  if (/^(FLOAT|DOUBLE)$/.test(type)) {
    const [finite, nan, infinite] = isText
      ? [`${column}::VARCHAR`, "'NaN'", `if(${column} > 0, 'Infinity', '-Infinity')`]
      : [`to_json(${column})`, "to_json('NaN')", 'NULL'];
    return `CASE WHEN isfinite(${column}) THEN ${finite} WHEN isnan(${column}) THEN ${nan} WHEN ${column} IS NOT NULL THEN ${infinite} END`;
  }
  if (isText || !LARGE_INTEGER.test(type)) return column;
  return `if(abs(${column}::HUGEINT) <= ${Number.MAX_SAFE_INTEGER}, to_json(${column}), to_json(${column}::VARCHAR))`;
}

/** What Excel can open. */
const MAX_ROWS = 1_048_576;
const MAX_COLUMNS = 16_384;
const MAX_TEXT = 32_767;
const MAX_SHEET_BYTES = 2 ** 32 - 1;

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const RELATIONSHIPS = 'http://schemas.openxmlformats.org/package/2006/relationships';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const CONTENT = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

/** The parts of a workbook besides its only sheet. The cell formats are: plain, heading, day, and time. */
const PARTS = {
  '[Content_Types].xml': `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${CONTENT}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="${CONTENT}.styles+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${CONTENT}.worksheet+xml"/></Types>`,
  '_rels/.rels': `<Relationships xmlns="${RELATIONSHIPS}"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  'xl/workbook.xml': `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets><sheet name="Answer" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${RELATIONSHIPS}"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${OFFICE}/styles" Target="styles.xml"/></Relationships>`,
  'xl/styles.xml': `<styleSheet xmlns="${MAIN}"><numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf xfId="0"/><xf xfId="0" fontId="1" applyFont="1"/><xf xfId="0" numFmtId="164" applyNumberFormat="1"/><xf xfId="0" numFmtId="165" applyNumberFormat="1"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`,
};

/**
 * A result as an Excel workbook, with rows read while it is written. Throws a `StorageError` beyond
 * Excel's limits.
 */
export async function* workbookOf({ columns, batches }: Answer): AsyncGenerator<Uint8Array> {
  if (columns.length > MAX_COLUMNS) throw tooLarge(`${thousands(MAX_COLUMNS)} columns`);
  const { strToU8, Zip, ZipDeflate } = await import('fflate');
  const written: Uint8Array[] = [];
  const zip = new Zip((error, bytes) => {
    if (error !== null) throw error;
    written.push(bytes);
  });
  const add = (name: string) => {
    const file = new ZipDeflate(name);
    zip.add(file);
    return file;
  };
  for (const [name, xml] of Object.entries(PARTS)) add(name).push(strToU8(XML + xml), true);
  const sheet = add('xl/worksheets/sheet1.xml');
  let size = 0;
  const write = (xml: string, isLast = false) => {
    const bytes = strToU8(xml);
    size += bytes.length;
    if (size > MAX_SHEET_BYTES) throw tooLarge('4 GB');
    sheet.push(bytes, isLast);
  };
  const widths = columns.map(({ isText }, index) => {
    const at = index + 1;
    return `<col min="${at}" max="${at}" width="${isText ? 40 : 14}" customWidth="1"/>`;
  });
  const heads = columns.map(({ name }) => textCell(name, ' s="1"'));
  write(
    `${XML}<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>${widths.join('')}</cols><sheetData><row>${heads.join('')}</row>`,
  );
  let count = 1;
  for await (const rows of batches) {
    count += rows.length;
    if (count > MAX_ROWS) throw tooLarge(`${thousands(MAX_ROWS - 1)} rows and their header`);
    const cells = rows.map((row) =>
      columns.map((column, index) => cell(row[index] ?? null, column)).join(''),
    );
    write(`<row>${cells.join('</row><row>')}</row>`);
    yield* written.splice(0);
  }
  write('</sheetData></worksheet>', true);
  zip.end();
  yield* written;
}

const tooLarge = (limit: string): StorageError =>
  new StorageError(
    `An Excel sheet holds at most ${limit}, and the result is larger. Query less, or write .csv or .parquet.`,
  );

function cell(value: Json, column: AnswerColumn): string {
  const exact = jsonValue(value, column);
  if (exact === null) return '<c/>';
  if (typeof exact === 'boolean') return `<c t="b"><v>${exact ? 1 : 0}</v></c>`;
  if (typeof exact === 'number' && Number.isFinite(exact)) return `<c><v>${exact}</v></c>`;
  const text = valueText(exact);
  const [, day, time] = (column.isText ? null : MOMENT.exec(text)) ?? [];
  const at = Date.parse(`${day ?? ''}T${time ?? '00:00:00'}Z`);
  if (at >= FIRST_DAY)
    return `<c s="${time === undefined ? 2 : 3}"><v>${(at - DAY_ZERO) / 86_400_000}</v></c>`;
  return textCell(text);
}

const MOMENT = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?))?$/;
/**
 * Excel counts days from here, but treats 1900 as a leap year, so days before `FIRST_DAY` would be
 * off by one.
 */
const DAY_ZERO = Date.UTC(1899, 11, 30);
const FIRST_DAY = Date.UTC(1900, 2, 1);

/** Text stays text, whatever it begins with: formulas need another kind of cell. */
function textCell(text: string, style = ''): string {
  if (text.length > MAX_TEXT) throw tooLarge(`${thousands(MAX_TEXT)} characters in a cell`);
  return `<c t="inlineStr"${style}><is><t xml:space="preserve">${inXml(text)}</t></is></c>`;
}

/** Escapes characters that XML cannot contain as Excel does, and text that looks like such an escape. */
const inXml = (text: string): string =>
  escapeMarkup(text)
    .replace(/_(?=x[0-9a-fA-F]{4}_)/g, '_x005F_')
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, (character) => {
      const code = character.charCodeAt(0).toString(16).toUpperCase();
      return `_x${code.padStart(4, '0')}_`;
    });
