import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { ignoreMissing, writeWhole } from '../files.js';
import { siteLink } from '../format/text.js';
import { storageFailure } from '../storage.js';
import { periodNamed, type Calendar, type Period } from './period.js';

/** The report and period after which a page's file is named. */
interface PageName {
  readonly name: string;
  readonly period: Period;
}

/** Where a report's page is kept: `<directory>/<project>/<report>-<period>.html`. */
export const pageFile = (directory: string, project: string, report: PageName): string =>
  join(directory, folderOf(project), fileOf(report));

/** Writes a report's page to its file, and returns that path. */
export async function writePage(
  directory: string,
  project: string,
  { name, period, page }: PageName & { readonly page: () => Promise<string> },
): Promise<string> {
  const file = pageFile(directory, project, { name, period });
  const text = await page();
  try {
    writeWhole(file, text);
  } catch (cause) {
    throw storageFailure(`write the report to ${file}`, cause);
  }
  return file;
}

/** The address of a report's page if `directory` is served at `baseUrl`; otherwise null. */
export function pageUrl(baseUrl: string | undefined, project: string, report: PageName): string | null {
  if (baseUrl === undefined) return null;
  // The folder's name is already encoded, and is encoded again in an address.
  return `${baseUrl}/${encodeURIComponent(folderOf(project))}/${fileOf(report)}`;
}

/** A project id is untrusted text; encoded, it cannot name another directory. */
const folderOf = (project: string): string => encodeURIComponent(project).replaceAll('.', '%2E');

const fileOf = ({ name, period }: PageName): string => `${name}-${period.name}.html`;

/** All pages below a directory, newest period first. */
export async function listPages(directory: string, calendar: Calendar) {
  const files = (await readdir(directory, { recursive: true }).catch(ignoreMissing)) ?? [];
  return files
    .flatMap((file) => pageIn(directory, file, calendar) ?? [])
    .sort((one, two) => compare(two.period.last, one.period.last) || compare(one.href, two.href));
}

const compare = (one: string, two: string): number => (one < two ? -1 : one > two ? 1 : 0);

/** The report and period that a file is named after; undefined for any other file. The report may have been removed. */
export function pageNamed(file: string, calendar: Calendar): PageName | undefined {
  const [, name = '', periodName = ''] = /^(.+)-(\d{4}-W?\d{2}(?:-\d{2})?)\.html$/.exec(file) ?? [];
  const period = periodNamed(periodName, calendar);
  return period && { name, period };
}

/** The page in a file below `directory`; undefined for any other file. */
function pageIn(directory: string, file: string, calendar: Calendar) {
  const [project = '', name = '', ...deeper] = file.split(/[/\\]/);
  const named = pageNamed(name, calendar);
  if (named === undefined || deeper.length > 0) return undefined;
  return {
    ...named,
    /**
     * Its address below that of the directory. The folder's name, an encoded project id, is encoded
     * again.
     */
    href: `${encodeURIComponent(project)}/${encodeURIComponent(name)}`,
    file: join(directory, file),
  };
}

/** What links in reports need of a project. Without a web app, a path leads to the site, if that has an address. */
export interface LinkedProject {
  readonly id: string;
  readonly siteUrl: string | null;
  /** The address of the web app (`serve.url`); null if it has none. */
  readonly webApp: string | null;
}

/** Where a report about a project leads as a whole. Null where nothing is served. */
export function linksOf(
  { serve, reports }: Pick<Settings, 'serve' | 'reports'>,
  { id }: Pick<ProjectSettings, 'id'>,
  report: { readonly name: string; readonly period: Period },
) {
  const webApp = serve?.url ?? null;
  const { first: from, last: to } = report.period;
  const inApp = (page: string, parameters = {}) =>
    webApp === null
      ? null
      : `${webApp}/${page}?${new URLSearchParams({ project: id, ...parameters }).toString()}`;
  return {
    /** The report in the browser. */
    page: pageUrl(webApp === null ? reports.baseUrl : `${webApp}/reports`, id, report),
    /** The agents' work in the web app. */
    agents: inApp('agents'),
    /** All pages that moved in the period, if it is a week. */
    moved: inApp('pages', { from, to, only: 'moved' }),
  };
}

/** The address of a page: of its numbers in the web app, or else on the site. */
export function pageLink({ id, siteUrl, webApp }: LinkedProject, path: string): string | undefined {
  if (webApp === null) return siteLink(siteUrl, path);
  return `${webApp}/page?${new URLSearchParams({ project: id, path }).toString()}`;
}
