import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Colors } from './templates.js';

const FONTS = fileURLToPath(new URL('../../templates/fonts/', import.meta.url));
const FONT_FAMILY = 'Inter';

/**
 * An SVG as an opaque PNG, `width` pixels wide. Colors named `var(--name)` are those of `colors`;
 * text is set in the font that comes with Readership, so that every machine makes the same bytes.
 */
export async function rasterize(svg: string, width: number, colors: Colors): Promise<Uint8Array> {
  const { Resvg } = await import('@resvg/resvg-js');
  const resolved = svg
    .replace(/var\(--([a-z-]+)\)/g, (whole, name: string) => colors[name] ?? whole)
    .replaceAll('font-family="inherit"', `font-family="${FONT_FAMILY}"`);
  const fontFiles = readdirSync(FONTS)
    .filter((file) => file.endsWith('.ttf'))
    .sort()
    .map((file) => FONTS + file);
  const defaults = { defaultFontFamily: FONT_FAMILY, sansSerifFamily: FONT_FAMILY };
  return new Resvg(resolved, {
    fitTo: { mode: 'width', value: width },
    background: colors['card'] ?? '#ffffff',
    font: { loadSystemFonts: false, fontFiles, ...defaults },
  })
    .render()
    .asPng();
}
