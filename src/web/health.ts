import { endOfMinute } from 'date-fns';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Workspace } from '../app/workspace.js';
import { counted } from '../format/numbers.js';
import { metricsText } from '../print/metrics.js';
import { type StatusLine, needsOf, operationsRows, statusRows } from '../print/status.js';
import { listPages, storedPages } from '../reports/pages.js';
import { titleOf } from '../reports/period.js';
import { readStatus } from '../service/status.js';
import { type Reader, type Row, timestampColumn } from '../warehouse/query.js';
import type { SiteRequest } from './request.js';

const runRow = z.looseObject({ started_at: timestampColumn, ended_at: timestampColumn.nullable() });

/**
 * The days by state, the requests used, the last runs, and what needs attention, as in `readership
 * status`.
 */
export async function health(request: SiteRequest): Promise<object> {
  const { reader, rows, offer, workspace, now, range } = request;
  // To the end of the minute, so that answers are kept for as long, and no run is left out.
  const { projects, operations } = await readStatus(reader, workspace, endOfMinute(now));
  const [days, findings, runs] = await Promise.all([
    range === undefined ? [] : rows('calendar', { ...range.extent }),
    rows('findings'),
    rows('runs'),
  ]);
  for (const name of ['coverage', 'requests', 'emails', 'agent-jobs']) offer(name);
  const statuses = [
    ...projects.map((one) => factsOf(one.name, statusRows(one, now), ` --project ${one.project}`)),
    factsOf('Operations', operationsRows(operations, now)),
  ];
  return {
    needs: needsOf(projects, operations, workspace, now),
    statuses,
    isWell: statuses.every(({ differing }) => differing.length === 0),
    operations,
    findings,
    runs: z.array(runRow).parse(runs),
    timezone: workspace.settings.schedule.timezone,
    days,
    calendarSaid: saidOf(days),
  };
}

/** What changes a fact of a project that is not as it should be. */
const COMMANDS: Readonly<Record<string, string>> = { inconsistent: 'audit --repair', verified: 'audit' };

/** Facts, of which `differing` are not as they should be, each with the command that changes it. */
function factsOf(title: string, rows: readonly StatusLine[], about = '') {
  const facts = rows.map(([name, value, color]) => {
    if (color !== 'red' && color !== 'yellow') return { name, value, command: null };
    const command = `readership ${COMMANDS[name] ?? 'export'}${about}`;
    return { name, value: value.replace(/: readership .*/s, ''), command };
  });
  return { name: title, rows: facts, differing: facts.filter(({ command }) => command !== null) };
}

/** The same as metrics in Prometheus's format. */
export async function metrics(reader: Reader, workspace: Workspace, now: Date): Promise<string> {
  const { projects, operations } = await readStatus(reader, workspace, now);
  return metricsText(projects, operations, needsOf(projects, operations, workspace, now));
}

function saidOf(days: readonly Row[]): string {
  const all = days.map((day) => z.string().parse(day['state']));
  const said = [...new Set(all)].map((state) => `${all.filter((one) => one === state).length} ${state}`);
  return `${counted(days.length, 'day')}: ${said.join(', ')}`;
}

/** Every rendered report, by period. */
export async function reports({ workspace }: SiteRequest): Promise<object> {
  const stored = await storedPages(workspace.reportsDir, workspace.settings.reports);
  const pages = stored.map((page) => ({ ...page, title: titleOf(page.period) }));
  const titles = [...new Set(pages.map(({ title }) => title))];
  return { periods: titles.map((title) => ({ title, pages: pages.filter((page) => page.title === title) })) };
}

/**
 * A rendered report with links to the previous and next ones, and a policy that allows only its own
 * script. The address is looked up among the rendered pages, so it cannot name another file.
 * Undefined if there is no such report.
 */
export async function renderedReport(
  { reportsDir, settings }: Workspace,
  href: string,
  bar: (links: object) => string,
): Promise<{ html: string; policy: string } | undefined> {
  const pages = await listPages(reportsDir, settings.reports);
  const found = pages.find((page) => page.href === href);
  if (found === undefined) return undefined;
  const series = pages.filter((page) => page.series === found.series);
  const at = series.indexOf(found);
  const links = { previous: series[at + 1]?.href ?? null, next: series[at - 1]?.href ?? null };
  const text = await readFile(found.file, 'utf8');
  const script = /<script>([^]*?)<\/script>\s*<\/body>/.exec(text)?.[1] ?? '';
  const hash = createHash('sha256').update(script).digest('base64');
  return {
    html: text.replace(/<body>/, (body) => `${body}\n${bar({ ...links, kind: found.period.kind })}`),
    policy: `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${hash}'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  };
}
