import { dayOf } from '../day.js';
import { longDay, plainDayRange } from '../format/days.js';
import { changeOf, counted, thousands } from '../format/numbers.js';
import type { Figures } from '../mail/delivery.js';
import type { Notice } from '../mail/message.js';
import type { ReportDefinition } from '../reports/definition.js';
import { pageUrl } from '../reports/pages.js';
import type { Period } from '../reports/period.js';
import { inlined, type Letterhead, sentByWords, signed } from '../reports/render.js';
import { fillTemplate, findTemplates, readPalette } from '../reports/templates.js';

interface Correction {
  readonly report: ReportDefinition;
  readonly period: Period;
  /** The project that the report was about; undefined for several. */
  readonly project: { readonly id: string; readonly name: string } | undefined;
  /** The numbers that were sent, and when. */
  readonly said: Figures;
  readonly sentAt: Date;
  readonly now: Figures & { readonly expected: number };
  readonly workspaceDir: string | undefined;
  /** Where the pages can be read. */
  readonly baseUrl: string | undefined;
  readonly letterhead: Letterhead | undefined;
}

/** The notice about a report that was sent incomplete, or whose numbers have changed since. */
export async function correctionOf(correction: Correction): Promise<Notice> {
  const { report, period, project, said, sentAt, now, workspaceDir, baseUrl, letterhead } = correction;
  const rows = (['human', 'ai'] as const).map((audience) => ({
    name: audience === 'ai' ? 'AI views' : 'Human views',
    ...{ said: said[audience], now: now[audience], change: changeOf(now[audience], said[audience]) },
  }));
  const sent = longDay(dayOf(sentAt));
  const why =
    said.days < now.days
      ? `The report sent on ${sent} covered ${said.days} of ${counted(now.expected, 'day')}. All of them are loaded now.`
      : `The platform has changed its numbers since the report was sent on ${sent}.`;
  const [row] = rows.filter((one) => one.said !== one.now);
  const news =
    row === undefined
      ? 'all days are loaded, and the numbers stay as they were'
      : `${counted(row.now, row.name.replace(/s$/, '').replace(/^H/, 'h'))}, not ${thousands(row.said)}`;
  const subject = `Correction: ${project?.name ?? report.title}, ${plainDayRange(period)}: ${news}`;
  const url = project && pageUrl(baseUrl, project.id, { name: report.name, period });
  const [templates, palette] = await Promise.all([findTemplates(workspaceDir), readPalette(workspaceDir)]);
  const model = {
    ...{ subject, preheader: why, why, rows, period, palette, pageUrl: url ?? null },
    sentBy: sentByWords(letterhead),
    ...{ news, name: project?.name ?? report.title, report: { name: report.name, title: report.title } },
  };
  const text = signed(fillTemplate('correction', 'text', templates, model), model.sentBy);
  return {
    ...{ kind: 'correction', subject, pageUrl: model.pageUrl, figures: now },
    brief: fillTemplate('correction', 'brief', templates, model),
    data: { why, said, now: { days: now.days, human: now.human, ai: now.ai } },
    email: async () => ({
      ...{ subject, text, pictures: [] },
      html: await inlined(fillTemplate('correction', 'mail', templates, model)),
    }),
  };
}
