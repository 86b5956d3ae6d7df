import stringWidth from 'string-width';

/** A column of a table for people. */
export interface TableColumn {
  readonly head: string;
  readonly align: 'left' | 'right';
  /** Narrowed first if the table is wider than the terminal; its cells are cut in the middle. */
  readonly shrinks?: boolean;
  /** The most columns that it takes, however long its cells are. */
  readonly most?: number;
}

const GAP = '  ';
const NARROWEST = 8;
/** Narrower cells are not readable in most columns. */
const LEGIBLE = 12;

/** Indexes of the columns to show: the first ones of a table much wider than `width`. */
export function legibleColumns(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] {
  const needed = widest(columns, rows).map((wanted) => Math.min(wanted, LEGIBLE) + GAP.length);
  const shown = columns.map((_, index) => index);
  const sum = () => shown.reduce((total, index) => total + (needed[index] ?? 0), 0);
  while (shown.length > 1 && sum() > width + GAP.length) shown.pop();
  return shown;
}

/** Rows as lines below their headers, for a file or a program: whole, and not aligned. */
export const plainLines = (columns: readonly TableColumn[], rows: readonly (readonly string[])[]): string[] =>
  [columns.map(({ head }) => head), ...rows].map((row) => row.join(GAP).trimEnd());

/** Rows as aligned lines below their headers, no wider than `width` if cells can be cut. */
export function alignedLines(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const widths = fitted(columns, widest(columns, rows), width - GAP.length * (columns.length - 1));
  return [columns.map(({ head }) => head), ...rows].map((row) =>
    columns
      .map(({ align }, index) => aligned(row[index] ?? '', widths[index] ?? 0, align))
      .join(GAP)
      .trimEnd(),
  );
}

/** The width of each column's widest cell, including its header. */
const widest = (columns: readonly TableColumn[], rows: readonly (readonly string[])[]): number[] =>
  columns.map(({ head, most = Infinity }, index) =>
    Math.min(
      most,
      rows.reduce((longest, row) => Math.max(longest, stringWidth(row[index] ?? '')), stringWidth(head)),
    ),
  );

/** Narrows the widest column until all fit: first columns that shrink first, then any. */
function fitted(columns: readonly TableColumn[], wanted: readonly number[], room: number): number[] {
  const widths = wanted.map((width) => Math.min(width, Math.max(room, NARROWEST)));
  const any = columns.map((_, index) => index);
  for (const candidates of [any.filter((index) => columns[index]?.shrinks), any])
    while (widths.reduce((sum, width) => sum + width, 0) > room) {
      const widest = Math.max(...candidates.map((index) => widths[index] ?? 0));
      if (widest <= NARROWEST) break;
      widths[candidates.find((index) => widths[index] === widest) ?? 0] = widest - 1;
    }
  return widths;
}

function aligned(text: string, width: number, align: TableColumn['align']): string {
  const shown = cut(text, width);
  const space = ' '.repeat(Math.max(0, width - stringWidth(shown)));
  return align === 'left' ? shown + space : space + shown;
}

/**
 * The beginning and the end of a text, because the end of a path is more useful than its middle.
 */
function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  const characters = Array.from(text);
  const tail = startOf(characters.toReversed(), Math.floor((width - 1) / 2)).toReversed();
  const head = startOf(characters, width - 1 - stringWidth(tail.join('')));
  return `${head.join('')}…${tail.join('')}`;
}

/** As many characters as fit into a number of columns; wide ones take two. */
function startOf(characters: readonly string[], width: number): string[] {
  let room = width;
  const end = characters.findIndex((character) => (room -= stringWidth(character)) < 0);
  return characters.slice(0, end);
}
