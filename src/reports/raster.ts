import { readdirSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';
import { packageFile } from '../files.js';
import type { Colors, Palette } from './templates.js';

const FONTS = packageFile('templates/fonts/');
const FONT_FAMILY = 'Inter';

/** An image in an email. */
interface MailPicture {
  /** Without the angle brackets of the Content-ID header. */
  readonly cid: string;
  readonly png: Uint8Array;
}

/** Image pixels per CSS pixel, for sharp images on phones. */
const DENSITY = 2;

const SVG = /<svg [^]*?<\/svg>/g;

/**
 * Email clients do not show SVG, so each one becomes two images, in light and dark colors; the
 * email's CSS shows the one that fits. The title of the SVG is their alt text.
 */
export async function withImages(
  html: string,
  name: string,
  palette: Palette,
): Promise<{ html: string; pictures: MailPicture[] }> {
  const pictures: MailPicture[] = [];
  const images: string[] = [];
  for (const [index, [svg]] of [...html.matchAll(SVG)].entries()) {
    const width = Number(/ width="(\d+)"/.exec(svg)?.[1]);
    const alt = /<title>([^<]*)<\/title>/.exec(svg)?.[1]?.replaceAll('"', '&quot;') ?? '';
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

/**
 * An SVG as a transparent PNG, `width` pixels wide. Colors named `var(--name)` are those of `colors`;
 * text uses the font that ships with Readership, so every machine produces the same bytes.
 */
async function rasterize(svg: string, width: number, colors: Colors): Promise<Uint8Array> {
  const { Resvg } = await import('@resvg/resvg-js');
  const resolved = svg
    .replace(/var\(--([a-z-]+)\)/g, (whole, name: string) => colors[name] ?? whole)
    .replaceAll('font-family="inherit"', `font-family="${FONT_FAMILY}"`);
  const fontFiles = readdirSync(FONTS)
    .filter((file) => file.endsWith('.ttf'))
    .sort()
    .map((file) => FONTS + file);
  const defaults = { defaultFontFamily: FONT_FAMILY, sansSerifFamily: FONT_FAMILY };
  return palettePng(
    new Resvg(resolved, {
      fitTo: { mode: 'width', value: width },
      font: { loadSystemFonts: false, fontFiles, ...defaults },
    }).render(),
  );
}

/** An image with four bytes per pixel: premultiplied red, green and blue, and opacity. */
interface Pixels {
  readonly pixels: Buffer;
  readonly width: number;
  readonly height: number;
}

const MOST_COLORS = 64;
/** Colors that match in these bits look alike. */
const ALIKE = 0xf8f8f8f8;

/** A PNG of at most 256 colors, a quarter of the size of one in full color. */
function palettePng({ pixels, width, height }: Pixels): Buffer {
  const uses = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 4) {
    const color = pixels.readUInt32BE(at);
    uses.set(color, (uses.get(color) ?? 0) + 1);
  }
  const places = new Map<number, number>();
  const palette: number[] = [];
  for (const [color] of [...uses].sort(([, one], [, two]) => two - one)) {
    if (palette.length === MOST_COLORS) break;
    if (places.has(color & ALIKE)) continue;
    places.set(color & ALIKE, palette.length);
    palette.push(color);
  }
  for (const color of uses.keys())
    if (!places.has(color & ALIKE)) places.set(color & ALIKE, nearest(palette, color));

  // Each row begins with its filter type: none.
  const rows = Buffer.alloc(height * (width + 1));
  for (let at = 0; at < width * height; at++)
    rows[at + Math.floor(at / width) + 1] = places.get(pixels.readUInt32BE(4 * at) & ALIKE) ?? 0;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  const colors = palette.map(channels);
  const plain = colors.flatMap(([red, green, blue, opacity]) =>
    [red, green, blue].map((part) => (opacity === 0 ? 0 : Math.min(255, Math.round((part * 255) / opacity)))),
  );
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(plain)),
    chunk('tRNS', Buffer.from(colors.map(([, , , opacity]) => opacity))),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const channels = (color: number): [red: number, green: number, blue: number, opacity: number] => [
  color >>> 24,
  (color >>> 16) & 255,
  (color >>> 8) & 255,
  color & 255,
];

function nearest(palette: readonly number[], color: number): number {
  const wanted = channels(color);
  const distances = palette.map((other) =>
    channels(other).reduce((sum, part, index) => sum + (part - (wanted[index] ?? 0)) ** 2, 0),
  );
  return distances.indexOf(Math.min(...distances));
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [size, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([size, body, check]);
}
