import type { Config, TopLevelSpec } from 'vega-lite';
import { z } from 'zod';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { escapeMarkup } from '../format/text.js';
import type { Picture } from './definition.js';

/** A picture over the rows of its query as SVG of a given width; drawn smaller, and then enlarged by a factor. */
export async function draw(
  picture: Picture,
  rows: readonly object[],
  width: number,
  enlargedBy = 1,
): Promise<string> {
  checkPicture(picture, rows);
  // Vega is slow to load, so it is loaded only when needed.
  const [vega, { compile }] = await Promise.all([import('vega'), import('vega-lite')]);
  // Vega only warns about data that it could not load, and draws without it.
  const problems: unknown[] = [];
  const loader = vega.loader();
  loader.load = (address) => {
    const refusal = new Error(`a picture cannot load ${address}; its data is the rows of its query`);
    problems.push(refusal);
    return Promise.reject(refusal);
  };
  const logger = vega.logger(vega.Error, undefined, (_method, _level, messages) =>
    problems.push(...messages),
  );
  try {
    vega.resetSVGDefIds();
    const { spec } = compile(sized(picture, rows, Math.round(width / enlargedBy)), { config: THEME, logger });
    const view = new vega.View(vega.parse(spec), { renderer: 'none', loader, logger });
    const svg = await view.toSVG();
    view.finalize();
    if (problems.length > 0) throw new Error(problems.map(messageOf).join(' '));
    const enlarged = (tag: string) =>
      tag.replace(
        / (width|height)="(\d+)"/g,
        (_, side: string, pixels: string) => ` ${side}="${Math.floor(Number(pixels) * enlargedBy)}"`,
      );
    return labelled(svg, picture).replace(/^<svg [^>]*>/, enlarged);
  } catch (cause) {
    throw new ConfigurationError(`${picture.file}: ${problemOf(cause)}`, { cause });
  }
}

/** Below this width, the picture's `usermeta.narrow` overrides the rest. */
const NARROW = 500;

const narrowPart = z.looseObject({ usermeta: z.looseObject({ narrow: z.looseObject({}) }) });

function sized({ spec: given, query }: Picture, rows: readonly object[], width: number): TopLevelSpec {
  const { data: narrow } = narrowPart.safeParse(given);
  const spec = width < NARROW ? { ...given, ...narrow?.usermeta.narrow } : given;
  const sizing = { autosize: { type: 'fit-x', contains: 'padding' }, background: 'transparent' };
  // Vega modifies the rows it is given, so it gets copies.
  const datasets = { [query]: rows.map((row) => ({ ...row })) };
  // Not validated here: Vega-Lite reports what is wrong with a specification.
  return { data: { name: query }, ...sizing, ...spec, width, datasets } as unknown as TopLevelSpec;
}

/** Vega's labels for screen readers do not identify the marks; one title and description serve better. */
function labelled(svg: string, { title, spec }: Picture): string {
  const description =
    typeof spec['description'] === 'string' ? `<desc>${escapeMarkup(spec['description'])}</desc>` : '';
  return svg
    .replace(/ (?:role="graphics-[a-z]+"|aria-[a-z]+="[^"]*")/g, '')
    .replace(/^<svg /, '<svg role="img" ')
    .replace('>', `><title>${escapeMarkup(title)}</title>${description}`);
}

const COLORS = ['var(--human)', 'var(--ai)', 'var(--muted)', 'var(--ink)'];

/** The default look of pictures. Colors follow the reader's light or dark mode. */
const THEME: Config = {
  aria: false,
  font: 'inherit',
  view: { stroke: null },
  mark: { color: 'var(--human)' },
  range: { category: COLORS, ordinal: COLORS },
  axis: {
    domain: false,
    ticks: false,
    labelColor: 'var(--muted)',
    labelFontSize: 13,
    labelPadding: 8,
    titleColor: 'var(--muted)',
    titleFontSize: 13,
    titleFontWeight: 'normal',
    gridColor: 'var(--line)',
  },
  axisQuantitative: { tickCount: 5 },
  // Dates as in sentences: Vega would write `Mon 19`.
  axisTemporal: {
    grid: false,
    format: { date: '%b %-d', day: '%b %-d', week: '%b %-d', month: '%b', year: '%Y' },
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
 * Throws a `ConfigurationError` for an unknown mark or a field that no row has; Vega-Lite would
 * silently ignore both.
 */
function checkPicture({ file, query, spec }: Picture, rows: readonly object[]): void {
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
