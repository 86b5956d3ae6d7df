import type { HelperDelegate, HelperOptions } from 'handlebars';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { searchedDirs } from '../files.js';
import { signedPercent } from '../format/numbers.js';
import { findTemplates, pageFiller, readPalette } from '../reports/templates.js';
import { sparkline } from './lines.js';

/** What a page keeps of the address before it: the project and the days. */
const KEPT = ['project', 'range', 'from', 'to', 'against'];

const rootSchema = z.object({ address: z.string() });

/** An address with some parameters changed; an empty one goes away. */
function addressWith(
  path: string,
  query: URLSearchParams,
  changes: Readonly<Record<string, unknown>>,
): string {
  for (const [name, value] of Object.entries(changes))
    if (value === '' || value === null) query.delete(name);
    else query.set(name, z.coerce.string().parse(value));
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

const currentOf = ({ data }: HelperOptions): URL =>
  new URL(rootSchema.parse((data as { root: unknown }).root).address, 'http://page');

const functions: Readonly<Record<string, HelperDelegate>> = {
  /** `link "/page" path=path`: another page, about the same project and days. */
  link: (path: unknown, options: HelperOptions) => {
    const { searchParams } = currentOf(options);
    for (const name of [...searchParams.keys()]) if (!KEPT.includes(name)) searchParams.delete(name);
    return addressWith(z.string().parse(path), searchParams, options.hash);
  },
  /** `here sort="ai"`: this page, shown otherwise, and from its beginning. */
  here: (options: HelperOptions) => {
    const { pathname, searchParams } = currentOf(options);
    return addressWith(pathname, searchParams, { page: '', ...options.hash });
  },
  /** A small line of some views, on the scale of two audiences. */
  sparkline: (values: unknown, others: unknown) => {
    const views = z.array(z.number()).parse(values);
    return sparkline(views, Math.max(1, ...views, ...z.array(z.number()).parse(others)));
  },
  changeOf: (ratio: unknown) => (typeof ratio === 'number' ? signedPercent(ratio) : '–'),
  answerFile: (format: unknown, options: HelperOptions) =>
    `/ask.${z.string().parse(format)}${currentOf(options).search}`,
  pagesCsv: (options: HelperOptions) => `/pages.csv${currentOf(options).search}`,
  share: (value: unknown, longest: unknown) =>
    `${Math.max(0.5, (z.number().parse(value) / Math.max(1, z.number().parse(longest))) * 100).toFixed(1)}%`,
  more: (one: unknown, other: unknown) => z.number().parse(one) > z.number().parse(other),
  /** The parameters of this address but some, for a form that sets those. */
  keptBut: (names: unknown, options: HelperOptions) => {
    const set = ['page', ...z.string().parse(names).split(' ')];
    return Object.fromEntries([...currentOf(options).searchParams].filter(([name]) => !set.includes(name)));
  },
};

/** The templates of the web app, and the files that its pages load. */
export async function openFrame(workspaceDir: string | undefined) {
  const [templates, palette] = await Promise.all([findTemplates(workspaceDir), readPalette(workspaceDir)]);
  const fill = pageFiller(templates, functions);
  const shared = fill('partials/style', { palette }).replaceAll(/<\/?style>/g, '');
  const own = (file: string) =>
    readFile(join(searchedDirs(undefined)[0] ?? '', 'templates/web', file), 'utf8');
  const assets = { css: `${shared}\n${await own('app.css')}`, js: await own('app.js') };
  const version = createHash('sha256')
    .update(assets.css + assets.js)
    .digest('hex')
    .slice(0, 12);
  return {
    assets,
    fill: (template: string, model: object) => fill(template, { ...model, version }),
  };
}
