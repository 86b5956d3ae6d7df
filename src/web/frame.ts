import Handlebars, { type HelperDelegate, type HelperOptions } from 'handlebars';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Workspace } from '../app/workspace.js';
import { readPalette } from '../charts/images.js';
import { sparkline } from '../charts/svg.js';
import { packageFile } from '../files.js';
import { pageAsInvoked } from '../format/advice.js';
import { percentOf, signedCount, thousands } from '../format/numbers.js';
import { of, orDash } from '../reports/template-functions.js';
import { findTemplates, pageFiller } from '../reports/templates.js';

/** An address on this server, with one slash: after two, a browser would read the name of another host. */
export const hrefOf = ({ pathname, search }: URL): string => pathname.replace(/^\/+/, '/') + search;

/** The parameters that a link to another page keeps. */
const KEPT = ['project', 'range', 'from', 'to', 'against'];

const values = z.array(z.number().nullable());

const rootSchema = z.object({ address: z.string() });

/** An address with some parameters changed; empty ones are removed. */
function addressWith(path: string, query: URLSearchParams, changes: HelperOptions['hash']): string {
  for (const [name, value] of Object.entries(changes))
    if (value === '' || value === null) query.delete(name);
    else query.set(name, z.coerce.string().parse(value));
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

const currentOf = ({ data }: HelperOptions): URL =>
  new URL(rootSchema.parse((data as { root: unknown }).root).address, 'http://page');

const keptAcross = (options: HelperOptions): URLSearchParams =>
  new URLSearchParams([...currentOf(options).searchParams].filter(([name]) => KEPT.includes(name)));

const functions: Readonly<Record<string, HelperDelegate>> = {
  /** `link "/page" path=path`: another page, about the same project and days. */
  link: (path: unknown, options: HelperOptions) =>
    addressWith(z.string().parse(path), keptAcross(options), options.hash),
  /** `here sort="ai"`: this page with other parameters, from its beginning, without the answer to a form. */
  here: (options: HelperOptions) => {
    const { pathname, searchParams } = currentOf(options);
    const changes = options.hash as Readonly<Record<string, unknown>>;
    const ended = Object.keys(changes).length === 0 ? {} : { done: '' };
    return addressWith(pathname, searchParams, { page: '', ...ended, ...changes });
  },
  /** `weeksSparkline human_weeks ai_weeks highest`: the weeks of a page by people and AI, on a scale that ends at `highest`. */
  weeksSparkline: (human: unknown, ai: unknown, highest: unknown) => {
    const lines = [
      { color: 'human', label: 'Human', values: values.parse(human) },
      { color: 'ai', label: 'AI', values: values.parse(ai) },
    ];
    const said = lines.map(
      (line) =>
        `${line.label} ${line.values.map((views) => (views === null ? '–' : thousands(views))).join(', ')}`,
    );
    const title = `Views per week over thirteen weeks. ${said.join('; ')}`;
    return new Handlebars.SafeString(sparkline({ title, lines, highest: z.number().parse(highest) }));
  },
  /** Views gained, such as `+690`, or a dash where nothing is compared. */
  gainedViews: orDash(signedCount),
  lowerCase: of(z.string(), (words) => words.toLowerCase()),
  /** A share in whole percent. */
  wholePercent: of(z.number(), percentOf),
  /** `download "/pages.csv"`: a file with what this page shows. */
  download: (path: unknown, options: HelperOptions) => z.string().parse(path) + currentOf(options).search,
  /** `time from=first to=last`: the pages read on some days, of the section that this page is about. */
  time: (options: HelperOptions) => {
    const { pathname, searchParams } = currentOf(options);
    const section = pathname === '/section' ? searchParams.get('section') : null;
    const path = section === null ? '/' : pathname;
    return addressWith(path, keptAcross(options), { section, ...options.hash });
  },
  /** The parameters of this address without the given ones, for a form that sets those. */
  keptBut: (names: unknown, options: HelperOptions) => {
    const set = ['page', 'done', ...z.string().parse(names).split(' ')];
    const parameters = [...currentOf(options).searchParams].map(([name, value]) => ({ name, value }));
    return parameters.filter(({ name }) => !set.includes(name));
  },
};

/** The project that an address names; undefined for none. Of several values of a parameter, the last one counts. */
const projectIn = (parameters: URLSearchParams): string | undefined => parameters.getAll('project').at(-1);

export type Frame = Awaited<ReturnType<typeof openFrame>>;

/** The templates of the web app, and the files that its pages load. The navigation lists a page, or shows it `under` another. */
export async function openFrame(
  { workspaceDir, projects, invocation }: Pick<Workspace, 'workspaceDir' | 'projects' | 'invocation'>,
  places: readonly { readonly path: string; readonly title: string; readonly under?: string | undefined }[],
  { signOut }: { readonly signOut: boolean },
) {
  const [templates, palette] = await Promise.all([findTemplates(workspaceDir), readPalette(workspaceDir)]);
  const fillIn = pageFiller(templates, functions);
  const shared = fillIn('partials/style', { palette }).replaceAll(/<\/?style>/g, '');
  const own = (file: string) => readFile(packageFile(`templates/web/${file}`), 'utf8');
  const js = `${fillIn('partials/chart-script', {})}\n${await own('app.js')}`;
  const assets = { css: `${shared}\n${await own('app.css')}`, js };
  const hash = createHash('sha256').update(assets.css + assets.js);
  const version = hash.digest('hex').slice(0, 12);
  const fill = (template: string, model: object): string =>
    pageAsInvoked(fillIn(`web/${template}`, { ...model, version }), invocation);
  return {
    assets,
    fill,
    /** A page with the navigation around it. */
    page: (template: string, title: string, address: URL, model: object): string => {
      const path = address.pathname;
      const current = places.find((place) => place.path === path)?.under ?? path;
      const project = projects.find(({ id }) => id === projectIn(address.searchParams)) ?? projects[0];
      return fill(template, {
        title,
        nothingLoaded: false,
        signOut,
        address: hrefOf(address),
        projects,
        project: project === undefined ? null : { ...project, siteUrl: project.siteUrl ?? null },
        navigation: places
          .filter(({ under }) => under === undefined)
          .map((place) => ({ name: place.title, path: place.path, isCurrent: place.path === current })),
        ...model,
      });
    },
  };
}
