import type { Config } from 'vega-lite';
import { ConfigurationError } from '../errors.js';
import type { Picture } from './definition.js';

const COLORS = ['var(--human)', 'var(--ai)', 'var(--muted)', 'var(--ink)'];

/** The default look of pictures. Colors follow the reader's light or dark mode. */
export const THEME: Config = {
  aria: false,
  font: 'inherit',
  view: { stroke: null },
  mark: { color: 'var(--human)' },
  range: { category: COLORS, ordinal: COLORS },
  axis: {
    ...{ domain: false, ticks: false, labelColor: 'var(--muted)', labelFontSize: 13, labelPadding: 8 },
    ...{ titleColor: 'var(--muted)', titleFontSize: 13, titleFontWeight: 'normal', gridColor: 'var(--line)' },
  },
  legend: { labelColor: 'var(--muted)', labelFontSize: 13, title: null, orient: 'top' },
  text: { fill: 'var(--ink)', fontSize: 13 },
  rule: { color: 'var(--muted)' },
};

const MARKS = [
  ...['arc', 'area', 'bar', 'boxplot', 'circle', 'errorband', 'errorbar', 'geoshape', 'image', 'line'],
  ...['point', 'rect', 'rule', 'square', 'text', 'tick', 'trail'],
];

/** Transforms that name new columns after values in the rows. */
const UNFORESEEABLE = ['pivot', 'lookup', 'from'];

/**
 * Throws a `ConfigurationError` for an unknown mark or a field that no row has; Vega-Lite would silently ignore both.
 */
export function checkPicture({ file, query, spec }: Picture, rows: readonly object[]): void {
  const columns = new Set(rows.flatMap(Object.keys));
  const named: { where: string; field: string }[] = [];
  let isForeseeable = rows.length > 0;
  visit(spec, '', (where, key, value) => {
    if (UNFORESEEABLE.includes(key)) isForeseeable = false;
    if (key === 'mark' && typeof value === 'string' && !MARKS.includes(value))
      throw new ConfigurationError(
        `${file}: ${where}: there is no mark “${value}”; there are ${MARKS.join(', ')}`,
      );
    if (key === 'field' && typeof value === 'string') named.push({ where, field: value });
    if (key === 'fold') for (const made of ['key', 'value']) columns.add(made);
    if (key === 'as') for (const made of [value].flat()) if (typeof made === 'string') columns.add(made);
  });
  const wrong = named.find(({ field }) => /^\w+$/.test(field) && !columns.has(field));
  if (wrong === undefined || !isForeseeable) return;
  const there = [...columns].join(', ');
  throw new ConfigurationError(
    `${file}: ${wrong.where}: no row of ${query} has “${wrong.field}”; there are ${there}`,
  );
}

/** Visits every key of a specification; the object form of a mark counts as its type. */
function visit(node: unknown, path: string, see: (where: string, key: string, value: unknown) => void): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries<unknown>(node as Record<string, unknown>)) {
    if (key === 'data' || key === 'config') continue;
    const where = Array.isArray(node) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
    const isLongMark = key === 'mark' && typeof value === 'object' && value !== null && 'type' in value;
    see(where, key, isLongMark ? value.type : value);
    visit(value, where, see);
  }
}
