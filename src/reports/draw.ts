import type { TopLevelSpec } from 'vega-lite';
import { z } from 'zod';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, messageOf } from '../errors.js';
import type { Picture } from './definition.js';
import { checkPicture, THEME } from './theme.js';

/** A picture as SVG of a given width, ready to be inserted into the page. */
export interface Drawing {
  readonly width: number;
  readonly svg: string;
}

/** Draws a picture over the rows of its query, once for each of `widths`. */
export async function draw(
  picture: Picture,
  rows: readonly object[],
  widths: readonly number[] = picture.widths,
): Promise<Drawing[]> {
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

  const drawings: Drawing[] = [];
  for (const width of widths) {
    try {
      vega.resetSVGDefIds();
      const { spec } = compile(sized(picture, rows, width), { config: THEME, logger });
      const view = new vega.View(vega.parse(spec), { renderer: 'none', loader, logger });
      const svg = await view.toSVG();
      view.finalize();
      if (problems.length > 0) throw new Error(problems.map(messageOf).join(' '));
      drawings.push({ width, svg: labelled(svg, picture) });
    } catch (cause) {
      throw new ConfigurationError(`${picture.file}: ${problemOf(cause)}`, { cause });
    }
  }
  return drawings;
}

/** Below this width, the picture's `usermeta.narrow` overrides the rest. */
const NARROW = 500;

const narrowPart = z.looseObject({ usermeta: z.looseObject({ narrow: z.looseObject({}) }) });

function sized({ spec: given, query }: Picture, rows: readonly object[], width: number): TopLevelSpec {
  const { data: narrow } = narrowPart.safeParse(given);
  const spec = width < NARROW ? { ...given, ...narrow?.usermeta.narrow } : given;
  const plot = width - side(spec['padding'], 'left') - side(spec['padding'], 'right');
  const sizing = { autosize: { type: 'fit-x', contains: 'padding' }, background: 'transparent' };
  // Vega modifies the rows it is given, so it gets copies.
  const datasets = { [query]: rows.map((row) => ({ ...row })) };
  // Not validated here: Vega-Lite reports what is wrong with a specification.
  return { data: { name: query }, ...sizing, ...spec, width: plot, datasets } as unknown as TopLevelSpec;
}

const side = (padding: unknown, name: 'left' | 'right'): number => {
  const value: unknown =
    typeof padding === 'object' && padding !== null
      ? Object.entries(padding).find(([key]) => key === name)?.[1]
      : padding;
  return typeof value === 'number' ? value : 0;
};

/** Vega's labels for screen readers do not identify the marks; one title and description serve better. */
function labelled(svg: string, { title, spec }: Picture): string {
  const description =
    typeof spec['description'] === 'string' ? `<desc>${escaped(spec['description'])}</desc>` : '';
  return svg
    .replace(/ (?:role="graphics-[a-z]+"|aria-[a-z]+="[^"]*")/g, '')
    .replace(/^<svg /, '<svg role="img" ')
    .replace('>', `><title>${escaped(title)}</title>${description}`);
}

const escaped = (text: string): string =>
  text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
