import { HTTPException } from 'hono/http-exception';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, type Day, type DayRange } from '../day.js';
import { inTitle } from '../format/text.js';
import { extentOf, NothingLoadedError } from '../reports/coverage.js';
import { listReports } from '../reports/definition.js';
import { listPages, pageNamed, pageUrl } from '../reports/report-pages.js';
import { lastEnded, type Period, periodOf, titleOf } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import type { Asker, HistoryReader } from './history.js';
import type { SiteRequest, Sources } from './request.js';

/** Where a report is served. */
const hrefOf = (project: ProjectSettings, name: string, period: Period): string =>
  pageUrl('/reports', project.id, { name, period }) ?? '';

/** Where the weekly report of the week that begins with `first` is served. */
export const weeklyHref = (project: ProjectSettings, first: Day, { settings }: Workspace): string =>
  hrefOf(project, 'weekly', periodOf('week', first, settings.reports));

/** The reports of every whole week of a history, the latest first. */
function everyWeek({ project, range, workspace, now }: SiteRequest) {
  if (range === undefined) return [];
  const calendar = workspace.settings.reports;
  const weeks: Period[] = [];
  const ended = lastEnded('week', now, calendar);
  const latest = periodOf('week', range.extent.last, calendar);
  for (
    let week = latest.last > ended.last ? ended : latest;
    week.last >= range.extent.first;
    week = periodOf('week', addDays(week.first, -1), calendar)
  )
    weeks.push(week);
  return weeks.map((week) => ({ title: titleOf(week), href: hrefOf(project, 'weekly', week) }));
}

const WEEKS_SHOWN = 13;

/** The weekly report of every week of a project, and its other reports that were rendered. */
export async function reports(request: SiteRequest): Promise<object> {
  const { workspace, project } = request;
  const weeks = everyWeek(request);
  const stored = await listPages(workspace.reportsDir, workspace.settings.reports);
  return {
    weeks: weeks.slice(0, WEEKS_SHOWN),
    earlier: weeks.slice(WEEKS_SHOWN),
    others: stored
      .map(({ name, period, href }) => ({ name, period, href: `/reports/${href}` }))
      .filter(({ name, period, href }) => name !== 'weekly' && href === hrefOf(project, name, period))
      .map(({ name, period, href }) => ({ report: inTitle(name), title: titleOf(period), href })),
  };
}

/**
 * A report with links to the previous and next ones, and a policy that allows only its own script. The weekly reports,
 * the latest of the others, and what is not kept as a file are rendered now, and not kept. Undefined if there is no such
 * report.
 */
export async function reportPage(
  sources: Sources,
  asker: Asker,
  href: string,
  bar: (links: object) => string,
): Promise<{ html: string; policy: string } | undefined> {
  const { reportsDir, settings } = sources.workspace;
  // The address is looked up among the files, so it cannot name another one.
  const kept = (await listPages(reportsDir, settings.reports)).find((page) => page.href === href);
  return sources.history.with(asker, async (reader) => {
    const asked = await findAsked(sources, reader, href);
    const isKept = kept !== undefined && asked?.isLive !== true;
    const text = isKept ? await readFile(kept.file, 'utf8').catch(() => undefined) : await asked?.render();
    if (text === undefined) return undefined;
    const script = /<script>([^]*?)<\/script>\s*<\/body>/.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(script).digest('base64');
    const links = bar({ about: '', previous: null, next: null, ...asked?.links });
    return {
      html: text.replace(/<body>/, (body) => `${body}\n${links}`),
      policy: `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${hash}'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
    };
  });
}

/** The report, project and period that an address names; undefined if one of them is unknown. */
async function findAsked({ workspace, runtime, proposals }: Sources, reader: HistoryReader, href: string) {
  const { settings, workspaceDir, projects } = workspace;
  const calendar = settings.reports;
  const named = pageNamed(href.replace(/^[^/]*\//, ''), calendar);
  if (named === undefined) return undefined;
  const { name, period } = named;
  const project = projects.find((one) => `/reports/${href}` === hrefOf(one, name, period));
  const { reports: known } = await listReports(workspaceDir);
  const report = known.find((one) => one.name === name && one.period === period.kind);
  if (project === undefined || report === undefined) return undefined;
  const extent = await extentOf(reader, project.id);
  const hrefIfLoaded = (other: Period) => (overlaps(other, extent) ? hrefOf(project, name, other) : null);
  const now = runtime.now();
  const ended = lastEnded(period.kind, now, calendar);
  const next = periodOf(period.kind, addDays(period.last, 1), calendar);
  // Its links lead to other pages of the app, at whatever address that was opened.
  const place = {
    ...workspace,
    settings: { ...settings, serve: { auth: 'link', ...settings.serve, url: '' } as const },
  };
  return {
    isLive: report.model === 'weekly' || period.name === ended.name,
    links: {
      kind: period.kind,
      /** The days of the report, in the address of other pages. */
      about: new URLSearchParams({ project: project.id, from: period.first, to: period.last }).toString(),
      previous: hrefIfLoaded(periodOf(period.kind, addDays(period.first, -1), calendar)),
      next: next.last > ended.last ? null : hrefIfLoaded(next),
    },
    render: async () => {
      try {
        // The same list as on the page about agents, which says why if there is none.
        const selectNow = () => proposals.select(reader, project, now).catch(() => undefined);
        const prepared = await prepareReport(place, reader, project, {
          report,
          period,
          now,
          selectNow,
        });
        return await prepared.page();
      } catch (error) {
        if (!(error instanceof NothingLoadedError)) throw error;
        throw new HTTPException(404, { message: error.message, cause: error });
      }
    },
  };
}

const overlaps = (one: DayRange, other: DayRange | undefined): boolean =>
  other !== undefined && one.first <= other.last && other.first <= one.last;
