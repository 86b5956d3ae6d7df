import { settingsSchema } from '../../src/config/schema.js';
import { serveSchema } from '../../src/config/serve.js';
import { findReport } from '../../src/reports/definition.js';
import { choosePeriod, ISO_CALENDAR, type Calendar } from '../../src/reports/period.js';
import { prepareReport, type PreparedReport } from '../../src/reports/render.js';
import type { Reader } from '../../src/warehouse/query.js';

const { reports: DEFAULTS, improve } = settingsSchema.parse({
  ...{ baseUrl: 'https://platform.example.com', projects: [{ id: 'prj_1' }] },
});

export const NOW = new Date('2026-11-18T09:00:00Z');
export const SITE_URL = 'https://docs.example.com';

interface Wanted {
  readonly reader: Reader;
  readonly name: string;
  readonly projectName?: string;
  /** Without one, pages are not linked. */
  readonly siteUrl?: string | undefined;
  readonly period?: string | undefined;
  readonly calendar?: Calendar;
  readonly now?: Date;
  readonly workspaceDir?: string;
  /** The address of the web app. */
  readonly webApp?: string;
}

/** A report of `prj_1` by its name, of a period by its name: the last that has ended when none is given. */
export async function prepare(wanted: Wanted): Promise<PreparedReport> {
  const { reader, name, projectName = 'Acme Docs', siteUrl, period, now = NOW } = wanted;
  const { calendar = ISO_CALENDAR, workspaceDir, webApp } = wanted;
  const report = await findReport(name, workspaceDir);
  const serve = webApp === undefined ? undefined : serveSchema.parse({ url: webApp });
  const settings = { improve, reports: { ...DEFAULTS, ...calendar }, serve };
  const project = { id: 'prj_1', name: projectName, siteUrl };
  return prepareReport({ settings, workspaceDir }, reader, project, {
    report,
    period: choosePeriod(report.period, period, now, calendar),
  });
}
