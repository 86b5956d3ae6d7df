import { Resvg } from '@resvg/resvg-js';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Colours } from './palette.js';

const FONTS = fileURLToPath(new URL('../../templates/fonts/', import.meta.url));
const FONT_FAMILY = 'Inter';

/**
 * An SVG as PNG of a width in pixels, on opaque paper. Colours named `var(--name)` are those of `colours`; text is set in the shipped font
 * and in no other, so that every machine makes the same bytes.
 */
export function rasterise(svg: string, width: number, colours: Colours): Uint8Array {
  const resolved = svg
    .replace(/var\(--([a-z-]+)\)/g, (whole, name: string) => colours[name] ?? whole)
    .replaceAll('font-family="inherit"', `font-family="${FONT_FAMILY}"`);
  return new Resvg(resolved, {
    fitTo: { mode: 'width', value: width },
    background: colours['card'] ?? '#ffffff',
    font: {
      loadSystemFonts: false,
      fontFiles: fontFiles(),
      defaultFontFamily: FONT_FAMILY,
      sansSerifFamily: FONT_FAMILY,
    },
  })
    .render()
    .asPng();
}

const fontFiles = (): string[] =>
  readdirSync(FONTS)
    .filter((file) => file.endsWith('.ttf'))
    .sort()
    .map((file) => FONTS + file);
