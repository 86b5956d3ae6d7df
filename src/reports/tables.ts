import { percent, thousands } from '../format/numbers.js';
import { inTitle, shownPath, shownText } from '../format/text.js';
import type { Answers, Row } from './answers.js';
import type { ReportDefinition } from './definition.js';

/** One value as shown by the built-in templates. */
interface Cell {
  readonly column: string;
  readonly title: string;
  readonly kind: 'path' | 'number' | 'text';
  /** Empty for NULL. */
  readonly text: string;
  /** The sort key. */
  readonly value: string | number;
}

/** The rows of a query as a table, for reports without their own template. */
export interface Table {
  readonly name: string;
  readonly title: string;
  /** For a query that returns one row: its values, each with a title. */
  readonly facts: readonly Cell[] | null;
  readonly head: readonly Cell[];
  readonly rows: readonly (readonly Cell[])[];
  /** The rows that fit into an email, and how many are left out. */
  readonly firstRows: readonly (readonly Cell[])[];
  readonly more: number;
  /** The same rows as text. */
  readonly inWords: readonly { readonly first: string; readonly rest: string }[];
}

/** No client clips an email below about 80 KB. */
const ROWS_IN_MAIL = 30;

/** The results of a report as tables, in the order of its queries. */
export const tablesOf = ({ queries }: ReportDefinition, answers: Answers): Table[] =>
  queries.map(({ name, rows: expected }) => {
    const rows = [answers[name] ?? []].flat().map(cellsOf);
    const firstRows = rows.slice(0, ROWS_IN_MAIL);
    return {
      ...{ name, title: inTitle(name), head: rows[0] ?? [], rows },
      ...{ firstRows, more: rows.length - firstRows.length, inWords: firstRows.map(rowInWords) },
      facts: expected === 'one' ? (rows[0] ?? null) : null,
    };
  });

const cellsOf = (row: Row): Cell[] =>
  Object.entries(row).map(([column, value]) => ({ column, title: titleOf(column), ...shown(column, value) }));

const rowInWords = ([first, ...rest]: readonly Cell[]) => ({
  first: first === undefined ? '' : cellInWords(first),
  rest: rest.map((cell) => `${cell.title} ${cellInWords(cell)}`).join(' · '),
});

const cellInWords = ({ kind, text }: Cell): string =>
  kind === 'path' ? shownPath(text) : text === '' ? '–' : text;

const titleOf = (column: string): string => inTitle(column).replace(/\bai\b/gi, 'AI');

function shown(column: string, value: Row[string]): Pick<Cell, 'kind' | 'text' | 'value'> {
  if (typeof value === 'number') return { kind: 'number', text: numberText(column, value), value };
  if (value === null) return { kind: 'text', text: '', value: '' };
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (column === 'path') return { kind: 'path', text, value: text };
  return { kind: 'text', text: shownText(text), value: text };
}

/** Fractions in columns named for a share or ratio as percentages, others with up to two decimals. */
const numberText = (column: string, value: number): string =>
  /(?:^|_)(?:share|ratio)$/.test(column)
    ? percent(value)
    : Number.isInteger(value)
      ? thousands(value)
      : value.toLocaleString('en-US', { maximumFractionDigits: 2 });
