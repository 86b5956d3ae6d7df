import { packageFile } from '../files.js';
import type { ChartColors, Palette } from './palette.js';

const FONT_FAMILY = 'Inter';
const FONT_FILES = ['Inter-Regular.ttf', 'Inter-SemiBold.ttf'].map((file) =>
  packageFile(`templates/fonts/${file}`),
);

/** Image pixels per CSS pixel, for sharp images on phones. */
const DENSITY = 2;

const SVG = /<svg [^]*?<\/svg>/g;

/**
 * Email clients do not show SVG, so each one becomes two images, in light and dark colors; the
 * email's CSS shows the one that fits. The title and the data of the SVG are their alt text.
 */
export async function withImages(html: string, name: string, palette: Palette) {
  /** The id of each is without the angle brackets of the Content-ID header. */
  const pictures: { cid: string; png: Uint8Array }[] = [];
  const images: string[] = [];
  for (const [index, [svg]] of [...html.matchAll(SVG)].entries()) {
    const width = Number(/ width="(\d+)"/.exec(svg)?.[1]);
    const alt = altOf(svg);
    const tags: string[] = [];
    for (const scheme of ['light', 'dark'] as const) {
      const cid = `${name}.${index + 1}.${scheme}@readership`;
      pictures.push({ cid, png: await rasterize(svg, DENSITY * width, palette[scheme]) });
      tags.push(`<img class="in-${scheme}" src="cid:${cid}" width="${width}" alt="${alt}">`);
    }
    images.push(tags.join(''));
  }
  return { html: html.replace(SVG, () => images.shift() ?? ''), pictures };
}

function altOf(svg: string): string {
  const [title = '', data = ''] = ['title', 'desc'].map(
    (tag) => new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(svg)?.[1] ?? '',
  );
  return (data === '' ? title : `${title.replace(/\.$/, '')}. ${data}`).replaceAll('"', '&quot;');
}

/**
 * An SVG as a transparent PNG, `width` pixels wide. Colors named `var(--name)` are those of `colors`;
 * text uses the font that ships with Readership, so every machine produces the same bytes.
 */
async function rasterize(svg: string, width: number, colors: ChartColors): Promise<Uint8Array> {
  const { Resvg } = await import('@resvg/resvg-js');
  const resolved = svg
    .replace(/var\(--([a-z-]+)\)/g, (whole, name: string) => colors[name] ?? whole)
    .replaceAll('font-family="inherit"', `font-family="${FONT_FAMILY}"`);
  const defaults = { defaultFontFamily: FONT_FAMILY, sansSerifFamily: FONT_FAMILY };
  return new Resvg(resolved, {
    fitTo: { mode: 'width', value: width },
    font: { loadSystemFonts: false, fontFiles: FONT_FILES, ...defaults },
  })
    .render()
    .asPng();
}
