import { counted } from '../format/numbers.js';
import { plainDayRange } from '../format/days.js';
import type { ReportDefinition } from './definition.js';
import type { Period } from './period.js';
import { inlined, type PreparedReport, type ReportMail, signed } from './render.js';
import { fillTemplate, findTemplates, readPalette } from './templates.js';

/** One email about several projects: the headline of each one's own email, and a link to the rest. */
export async function digestOf(
  { title }: ReportDefinition,
  period: Period,
  reports: readonly PreparedReport[],
  workspaceDir: string | undefined,
): Promise<ReportMail & { brief: string }> {
  const [templates, palette] = await Promise.all([findTemplates(workspaceDir), readPalette(workspaceDir)]);
  const parts = reports.map(({ subject, preheader, pageUrl }) => ({ subject, preheader, pageUrl }));
  const sentBy = reports[0]?.sentBy ?? null;
  const subject = `${title}, ${plainDayRange(period)}: ${counted(parts.length, 'project')}`;
  const preheader = parts[0]?.subject ?? '';
  const model = { subject, preheader, period, parts, palette, report: { title }, pageUrl: null, sentBy };
  const brief = fillTemplate('digest', 'text', templates, model);
  return {
    ...{ subject, preheader, pictures: [], brief, text: signed(brief, sentBy) },
    html: await inlined(fillTemplate('digest', 'mail', templates, model)),
  };
}
