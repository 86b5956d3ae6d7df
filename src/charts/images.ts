import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseYaml } from '../config/problems.js';
import { ownOrBuiltIn, packageFile } from '../files.js';

/** A color format that browsers, email clients and the picture renderer all support. */
const color = z.string().regex(/^#(?:[0-9a-f]{6}|[0-9a-f]{8})$/i, 'expected a color such as #0f766e');
const colors = z.record(z.string().regex(/^[a-z]+(?:-[a-z]+)*$/), color);
const palette = z.strictObject({ light: colors, dark: colors });

type Colors = z.infer<typeof colors>;
/** Colors by name, for light and dark backgrounds. */
export type Palette = z.infer<typeof palette>;

const FILE = 'templates/palette.yaml';

/** The colors of the workspace's `templates/palette.yaml`; those that it does not name are the built-in ones. */
export async function readPalette(workspaceDir: string | undefined): Promise<Palette> {
  const [builtIn, own] = await Promise.all([read(packageFile(FILE)), read(ownOrBuiltIn(FILE, workspaceDir))]);
  return { light: { ...builtIn.light, ...own.light }, dark: { ...builtIn.dark, ...own.dark } };
}

const read = async (path: string): Promise<Palette> => parseYaml(await readFile(path, 'utf8'), path, palette);

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
async function rasterize(svg: string, width: number, colors: Colors): Promise<Uint8Array> {
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
