import type { TopLevelSpec } from 'vega-lite';
import { ConfigurationError, messageOf } from '../errors.js';
import type { Row } from './answers.js';
import type { Picture } from './catalog.js';
import { faultOf } from './fault.js';

/** A picture as SVG of a given width, to stand in the page as it is. */
export interface Drawing {
  readonly width: number;
  readonly svg: string;
}

/** Draws a picture over the rows of its query, once for each of its widths. */
export async function draw(picture: Picture, rows: readonly Row[]): Promise<Drawing[]> {
  // Vega takes a while to load, so only those who draw pay for it.
  const [vega, { compile }] = await Promise.all([import('vega'), import('vega-lite')]);
  // Vega itself only warns of data that it could not load, and draws without.
  const faults: unknown[] = [];
  const loader = vega.loader();
  loader.load = (address) => {
    const refusal = new Error(`a picture may not load ${address}: its data are the rows of its query`);
    faults.push(refusal);
    return Promise.reject(refusal);
  };
  const logger = vega.logger(vega.Error, undefined, (_method, _level, messages) => faults.push(...messages));

  const drawings: Drawing[] = [];
  for (const width of picture.widths) {
    try {
      vega.resetSVGDefIds();
      const { spec } = compile(sized(picture, rows, width));
      const view = new vega.View(vega.parse(spec), { renderer: 'none', loader, logger });
      const svg = await view.toSVG();
      view.finalize();
      if (faults.length > 0) throw new Error(faults.map(messageOf).join(' '));
      drawings.push({ width, svg: labelled(svg, picture) });
    } catch (cause) {
      throw new ConfigurationError(`${picture.file}: ${faultOf(cause)}`, { cause });
    }
  }
  return drawings;
}

function sized({ spec, query }: Picture, rows: readonly Row[], width: number): TopLevelSpec {
  const plot = width - side(spec['padding'], 'left') - side(spec['padding'], 'right');
  // Vega marks the rows that it is given, so it gets copies.
  const datasets = { [query]: rows.map((row) => ({ ...row })) };
  // The folder's JSON is the edge here: Vega-Lite itself says what is wrong with a specification.
  return { ...spec, width: plot, datasets } as unknown as TopLevelSpec;
}

const side = (padding: unknown, name: 'left' | 'right'): number => {
  const value: unknown =
    typeof padding === 'object' && padding !== null
      ? Object.entries(padding).find(([key]) => key === name)?.[1]
      : padding;
  return typeof value === 'number' ? value : 0;
};

/** Vega gives its marks roles without names; instead the picture as a whole gets a title and a description. */
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
