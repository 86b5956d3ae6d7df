import type { ProjectSettings, Settings } from '../config/schema.js';
import { siteLink } from '../format/text.js';
import { pageUrl } from './pages.js';
import type { Period } from './period.js';

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
  return {
    /** The report in the browser. */
    page: pageUrl(webApp === null ? reports.baseUrl : `${webApp}/reports`, id, report),
    /** The agents' work in the web app. */
    agents: webApp === null ? null : `${webApp}/agents?${new URLSearchParams({ project: id }).toString()}`,
  };
}

/** The address of a page: of its numbers in the web app, or else on the site. */
export function pageLink({ id, siteUrl, webApp }: LinkedProject, path: string): string | undefined {
  if (webApp === null) return siteLink(siteUrl, path);
  return `${webApp}/page?${new URLSearchParams({ project: id, path }).toString()}`;
}
