import { settingsSchema } from '../../src/config/schema.js';
import { findReport } from '../../src/reports/definition.js';
import { choosePeriod, ISO_CALENDAR, type Calendar } from '../../src/reports/period.js';
import { prepareReport, type PreparedReport } from '../../src/reports/render.js';
import type { Reader } from '../../src/warehouse/query.js';

const { reports: DEFAULTS } = settingsSchema.parse({
  ...{ baseUrl: 'https://platform.example.com', projects: [{ id: 'prj_1' }] },
});

interface Wanted {
  readonly reader: Reader;
  readonly name: string;
  readonly project: { readonly id: string; readonly name: string; readonly siteUrl?: string | undefined };
  readonly period?: string | undefined;
  readonly calendar?: Calendar;
  readonly now: Date;
  readonly workspaceDir?: string;
}

/** A report by its name, of a period by its name: the last that has ended when none is given. */
export async function prepare(wanted: Wanted): Promise<PreparedReport> {
  const { reader, name, project, period, calendar = ISO_CALENDAR, now, workspaceDir } = wanted;
  const report = await findReport(name, workspaceDir);
  const settings = { reports: { ...DEFAULTS, ...calendar } };
  return prepareReport({ settings, workspaceDir }, reader, project, {
    report,
    period: choosePeriod(report.period, period, now, calendar),
  });
}
