import Handlebars from 'handlebars';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { readPalette } from '../charts/palette.js';
import type { Settings } from '../config/schema.js';
import type { Day } from '../day.js';
import { ignoreMissing, version, writeWhole } from '../files.js';
import { inTitle } from '../format/text.js';
import type { Reader } from '../warehouse/query.js';
import { storageFailure } from '../storage.js';
import { BOOKKEEPING, tableDigests } from '../warehouse/publish.js';
import type { ReportDefinition } from './definition.js';
import { periodNamed, type Calendar, type Period } from './period.js';
import { findTemplates } from './templates.js';

/** The report and period after which a page's file is named. */
interface PageName {
  readonly name: string;
  readonly period: Period;
}

/**
 * Writes a report's page to `<directory>/<project>/<report>-<period>.html`, and returns that path.
 * `source` is the digest of what it was rendered from, if known.
 */
export async function writePage(
  directory: string,
  project: string,
  { name, period, page }: PageName & { readonly page: () => Promise<string> },
  source?: string,
): Promise<string> {
  const file = join(directory, folderOf(project), fileOf({ name, period }));
  const text = (await page()) + endOf(source);
  try {
    writeWhole(file, text);
  } catch (cause) {
    throw storageFailure(`write the report to ${file}`, cause);
  }
  return file;
}

/** The page if it was rendered from `source`; undefined if it must be rendered. */
export async function keptPage(
  directory: string,
  project: string,
  report: PageName,
  source: string | undefined,
): Promise<{ file: string; subject: string } | undefined> {
  if (source === undefined) return undefined;
  const file = join(directory, folderOf(project), fileOf(report));
  const html = (await readFile(file, 'utf8').catch(ignoreMissing)) ?? '';
  return html.endsWith(endOf(source)) ? { file, subject: titleIn(html) ?? report.name } : undefined;
}

const endOf = (source: string | undefined): string =>
  source === undefined ? '' : `<!-- rendered from ${source} -->\n`;

/** The address of a report's page if `directory` is served at `baseUrl`; otherwise null. */
export function pageUrl(baseUrl: string | undefined, project: string, report: PageName): string | null {
  if (baseUrl === undefined) return null;
  // The folder's name is already encoded, and is encoded again in an address.
  return `${baseUrl}/${encodeURIComponent(folderOf(project))}/${fileOf(report)}`;
}

/** A project id is untrusted text; encoded, it cannot name another directory. */
const folderOf = (project: string): string => encodeURIComponent(project).replaceAll('.', '%2E');

const fileOf = ({ name, period }: PageName): string => `${name}-${period.name}.html`;

/** As `listPages`, each with its subject, which is read from its file. */
export async function storedPages(directory: string, calendar: Calendar) {
  const pages = await listPages(directory, calendar);
  return Promise.all(
    pages.map(async (page) => {
      const html = await textOf(createReadStream(page.file, { end: BEGINNING - 1 }));
      return { ...page, subject: titleIn(html) ?? basename(page.file) };
    }),
  );
}

/** All pages below a directory, newest period first. */
export async function listPages(directory: string, calendar: Calendar) {
  const files = (await readdir(directory, { recursive: true }).catch(ignoreMissing)) ?? [];
  return files
    .flatMap((file) => pageIn(directory, file, calendar) ?? [])
    .sort((one, two) => compare(two.period.last, one.period.last) || compare(one.href, two.href));
}

const compare = (one: string, two: string): number => (one < two ? -1 : one > two ? 1 : 0);

/** The page in a file below `directory`; undefined for any other file. */
function pageIn(directory: string, file: string, calendar: Calendar) {
  const [project = '', name = '', ...deeper] = file.split(/[/\\]/);
  const [, report = '', periodName = ''] = /^(.+)-(\d{4}-W?\d{2}(?:-\d{2})?)\.html$/.exec(name) ?? [];
  const period = periodNamed(periodName, calendar);
  if (period === undefined || deeper.length > 0) return undefined;
  return {
    period,
    /** The report's name as a title, such as `Weekly`; the report itself may have been removed. */
    report: inTitle(report),
    /**
     * Its address below that of the directory. The folder's name, an encoded project id, is encoded
     * again.
     */
    href: `${encodeURIComponent(project)}/${encodeURIComponent(name)}`,
    file: join(directory, file),
    /** Identifies the project and report, which earlier and later pages share. */
    series: `${project}/${report}`,
  };
}

/** The bytes of a page in which its title is. */
const BEGINNING = 4096;

/** Characters that templates escape; the ampersand last, because the others contain it. */
const ESCAPED = ['<', '>', '"', "'", '`', '=', '&'];

/** The title as text, without the templates' escapes. */
const titleIn = (html: string): string | undefined =>
  ESCAPED.reduce(
    (title, character) => title?.replaceAll(Handlebars.escapeExpression(character), character),
    /<title>([^]*?)<\/title>/.exec(html)?.[1],
  );

/** Sending emails changes this one, and not what reports are about. */
const COUNTING = { ...BOOKKEEPING, deliveries: null };

/** Tables that every run changes. A report that reads one of them is rendered each time. */
const OF_EVERY_RUN = /\b(?:runs|deliveries|request_uses|unfinished_pages|verifications)\b/i;

/**
 * Digests of everything that the pages of a report depend on besides project and period: the history
 * as readers see it, the definition, templates and settings, the version of Readership, and the day,
 * which SQL may use. A page with the same digest is the same. Undefined for a report that reads what
 * every run changes.
 */
export async function sourceOfPages(
  reader: Reader,
  workspaceDir: string | undefined,
  { reports, mail }: Pick<Settings, 'reports' | 'mail'>,
  today: Day,
  by = version,
): Promise<(report: ReportDefinition, about: object) => string | undefined> {
  const templates = [...(await findTemplates(workspaceDir))].sort();
  const common = JSON.stringify([
    ...[by, today, reports, mail],
    await Promise.all(templates.map(async ([name, file]) => [name, await readFile(file, 'utf8')])),
    await readPalette(workspaceDir),
    await tableDigests(reader, 'main', COUNTING),
  ]);
  return (report, about) =>
    report.queries.some(({ sql }) => OF_EVERY_RUN.test(sql))
      ? undefined
      : createHash('sha256')
          .update(common)
          .update(JSON.stringify([report, about]))
          .digest('hex');
}
