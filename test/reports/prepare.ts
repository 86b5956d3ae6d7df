import { settingsSchema } from '../../src/config/schema.js';
import { serveSchema } from '../../src/config/serve.js';
import type { Invocation } from '../../src/format/advice.js';
import { findReport } from '../../src/reports/definition.js';
import { type Calendar, choosePeriod, ISO_CALENDAR } from '../../src/reports/period.js';
import { type PreparedReport, prepareReport } from '../../src/reports/render.js';
import type { Reader } from '../../src/history/duckdb.js';

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
  readonly invocation?: Invocation;
  /** The address of the web app. */
  readonly webApp?: string;
}

/** A report of `prj_1` by its name, of a period by its name: the last that has ended when none is given. */
export async function prepare(wanted: Wanted): Promise<PreparedReport> {
  const { reader, name, projectName = 'Acme Docs', siteUrl, period, now = NOW } = wanted;
  const { calendar = ISO_CALENDAR, workspaceDir, invocation = {}, webApp } = wanted;
  const report = await findReport(name, workspaceDir);
  const serve = webApp === undefined ? undefined : serveSchema.parse({ url: webApp });
  const settings = { improve, reports: { ...DEFAULTS, ...calendar }, serve };
  const project = { id: 'prj_1', name: projectName, siteUrl };
  return prepareReport({ settings, workspaceDir, invocation }, reader, project, {
    report,
    period: choosePeriod(report.period, period, now, calendar),
    now,
  });
}
