/** A column of a table for people. */
export interface Column {
  readonly head: string;
  readonly align: 'left' | 'right';
  /** The one column that gives way when the table is wider than the terminal; its cells are cut in the middle. */
  readonly shrinks?: boolean;
}

const GAP = '  ';
const NARROWEST = 12;

/** Rows as aligned lines, the heads first, no wider than `width` where cells can be cut. */
export function alignedLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const table = [columns.map(({ head }) => head), ...rows];
  const widths = columns.map((_, index) => Math.max(...table.map((row) => lengthOf(row[index] ?? ''))));
  const excess = widths.reduce((sum, columnWidth) => sum + columnWidth + GAP.length, -GAP.length) - width;
  const fitted = columns.map(({ shrinks }, index) => {
    const wanted = widths[index] ?? 0;
    return shrinks === true && excess > 0 ? Math.max(Math.min(wanted, NARROWEST), wanted - excess) : wanted;
  });
  return table.map((row) =>
    columns
      .map(({ align }, index) => aligned(row[index] ?? '', fitted[index] ?? 0, align))
      .join(GAP)
      .trimEnd(),
  );
}

function aligned(text: string, width: number, align: Column['align']): string {
  const shown = cut(text, width);
  const space = ' '.repeat(width - lengthOf(shown));
  return align === 'left' ? shown + space : space + shown;
}

/** The beginning and the end of a text: the end of a path tells more than its middle. */
function cut(text: string, width: number): string {
  const characters = Array.from(text);
  if (characters.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  return `${characters.slice(0, width - 1 - tail).join('')}…${characters.slice(characters.length - tail).join('')}`;
}

const lengthOf = (text: string): number => Array.from(text).length;
