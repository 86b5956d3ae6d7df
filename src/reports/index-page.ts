import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { capitalised } from '../format/numbers.js';
import type { Period, Calendar } from './period.js';
import { parsePeriod, titleOf } from './period.js';
import { readPalette } from './palette.js';
import { ignoreMissing } from '../files.js';
import { fillTemplate, readTemplates } from './templates.js';
import { writeWhole } from './write.js';

interface StoredPage {
  readonly period: Period;
  /** The name of the report as words, such as `Weekly`: it may not be there any more. */
  readonly report: string;
  readonly subject: string;
  readonly href: string;
}

/** Writes `<directory>/index.html`: all pages that lie below, newest period first. Returns its path. */
export async function writeIndex(
  directory: string,
  { workspaceDir, calendar }: { workspaceDir: string | undefined; calendar: Calendar },
): Promise<string> {
  const [templates, palette] = await Promise.all([readTemplates(workspaceDir), readPalette(workspaceDir)]);
  const pages = await storedPages(directory, calendar);
  const titles = [...new Set(pages.map(({ period }) => titleOf(period)))];
  const periods = titles.map((title) => ({
    title,
    pages: pages.filter(({ period }) => titleOf(period) === title),
  }));
  const file = join(directory, 'index.html');
  await writeWhole(file, fillTemplate('index', 'page', templates, { subject: 'Reports', palette, periods }));
  return file;
}

async function storedPages(directory: string, calendar: Calendar): Promise<StoredPage[]> {
  const files = (await readdir(directory, { recursive: true }).catch(ignoreMissing)) ?? [];
  const found = await Promise.all(files.map((file) => storedPage(directory, file, calendar)));
  return found
    .flatMap((page) => page ?? [])
    .sort((one, two) => compare(two.period.last, one.period.last) || compare(one.href, two.href));
}

const compare = (one: string, two: string): number => (one < two ? -1 : one > two ? 1 : 0);

async function storedPage(
  directory: string,
  file: string,
  calendar: Calendar,
): Promise<StoredPage | undefined> {
  const [project, name, ...deeper] = file.split(/[/\\]/);
  const named = /-(\d{4}-W\d{2}|\d{4}-\d{2}(?:-\d{2})?)\.html$/.exec(name ?? '')?.[1];
  if (project === undefined || name === undefined || deeper.length > 0 || named === undefined)
    return undefined;
  const kind = named.includes('W') ? 'week' : named.length === 7 ? 'month' : 'day';
  return {
    period: parsePeriod(kind, named, calendar),
    report: capitalised(name.slice(0, -`-${named}.html`.length).replaceAll(/[-_]/g, ' ')),
    subject: titleIn(await beginningOf(join(directory, file))) ?? name,
    // A folder's name is a project's id, encoded; in an address it is encoded once more.
    href: `${encodeURIComponent(project)}/${encodeURIComponent(name)}`,
  };
}

/** As much of a page as holds its title. */
async function beginningOf(file: string): Promise<string> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(4096) });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#x27;': "'",
  '&#x60;': '`',
  '&#x3D;': '=',
};

/** The title as text, with what the templates escape resolved. */
const titleIn = (html: string): string | undefined =>
  /<title>([^]*?)<\/title>/.exec(html)?.[1]?.replace(/&[#\w]+;/g, (entity) => ENTITIES[entity] ?? entity);
