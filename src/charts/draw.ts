import { z } from 'zod';
import { drawBars } from './bars.js';
import { barChart, lineChart } from './chart.js';
import { drawLines } from './lines.js';
import { SIZE_NAMES } from './svg.js';

/** What templates may draw, and where it is shown. */
const chart = z.discriminatedUnion('kind', [lineChart, barChart]);
const size = z.enum(SIZE_NAMES);

/**
 * A chart as SVG, for a page, a tablet, a phone or an email. Both are checked, because templates can pass anything. Its
 * colors are `var(--name)`, from the palette.
 */
export function drawChart(given: unknown, where: unknown): string {
  const drawn = chart.parse(given);
  return drawn.kind === 'lines' ? drawLines(drawn, size.parse(where)) : drawBars(drawn, size.parse(where));
}
