import { ISO_CALENDAR, lastEnded, parsePeriod, type Calendar, type Period } from './period.js';
import type { DayRange } from '../day.js';
import type { Reader } from '../warehouse/query.js';
import { answer, type Answers } from './answers.js';
import { findReport, type ReportDefinition } from './catalog.js';
import { draw, type Drawing } from './draw.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { faultOf } from './fault.js';
import { composeMail, type ReportMail } from './mail.js';
import { readPalette } from './palette.js';
import { canShow, fillLine, fillTemplate, readTemplates } from './templates.js';
import { improveModel } from './improve/model.js';
import { weeklyModel } from './weekly/model.js';

/** The project that a report is about. `siteUrl` is where its pages are; without it, paths are no links. */
interface ReportedProject {
  readonly id: string;
  readonly name: string;
  readonly siteUrl?: string | undefined;
}

export interface RenderRequest {
  readonly reader: Reader;
  readonly name: string;
  readonly project: ReportedProject;
  /** Such as `2026-W46`, `2026-11`, or a day in it; the last one that has ended at `now` when not given. */
  readonly period?: string | undefined;
  /** ISO weeks and UTC when not given. */
  readonly calendar?: Calendar | undefined;
  readonly now: Date;
  /** Whether the mail is wanted too; it is when not said. */
  readonly withMail?: boolean | undefined;
  /** Where the workspace's own `reports/` and `templates/` are looked for. */
  readonly workspaceDir?: string | undefined;
}

/** A report of one period, ready to be stored or shown. */
export interface RenderedReport {
  readonly name: string;
  /** Such as `2026-W46`. */
  readonly period: string;
  readonly days: DayRange;
  readonly subject: string;
  /** A whole page that needs nothing else. */
  readonly html: string;
  /** The same in plain text; null without a template for it. */
  readonly text: string | null;
  /** The same as a mail; null without a template for it, or when it was not wanted. */
  readonly mail: ReportMail | null;
  /** What the page shows, as data. */
  readonly model: object;
}

/** Renders a report over the history that `reader` answers from. Reads the report's files, writes nothing. */
export async function renderReport(request: RenderRequest): Promise<RenderedReport> {
  const { reader, name, now, workspaceDir, calendar = ISO_CALENDAR } = request;
  const project = { ...request.project, siteUrl: request.project.siteUrl ?? null };
  const [report, templates, palette] = await Promise.all([
    findReport(name, workspaceDir),
    readTemplates(workspaceDir),
    readPalette(workspaceDir),
  ]);

  const period =
    request.period === undefined
      ? lastEnded(report.period, now, calendar)
      : parsePeriod(report.period, request.period, calendar);
  const parameters = { project: project.id, from: period.first, to: period.last };
  const answers = await answer(reader, report.queries, parameters);
  const model = { project, period, ...modelOf(report, answers, { project, period, calendar }) };

  const subject = fillLine(name, 'subject', report.subject, model);
  const shown = {
    ...model,
    report: { name, title: report.title },
    subject,
    palette,
    timezone: calendar.timezone,
  };
  const pictures = await drawAll(report, answers);
  const html = fillTemplate(name, 'page', templates, { ...shown, pictures });
  const hasMail = canShow(name, 'mail', templates) && request.withMail !== false;
  const text =
    hasMail || canShow(name, 'text', templates) ? fillTemplate(name, 'text', templates, shown) : null;
  const mail =
    hasMail && text !== null
      ? await composeMail(report, answers, templates, palette, { ...shown, text })
      : null;
  return { name, period: period.name, days: period, subject, html, text, mail, model };
}

/** The typed model that the report names, or the rows as they are, by the name of their query. */
function modelOf(
  report: ReportDefinition,
  answers: Answers,
  context: { project: { name: string }; period: Period; calendar: Calendar },
): object {
  if (report.model === undefined) return { rows: answers };
  try {
    return report.model === 'weekly' ? weeklyModel(answers, context) : improveModel(answers);
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    const message = `${report.folder}: the queries do not give what the ${report.model} model needs: ${faultOf(cause)}`;
    throw new ConfigurationError(message, { cause });
  }
}

async function drawAll(report: ReportDefinition, answers: Answers): Promise<Record<string, Drawing[]>> {
  const pictures: Record<string, Drawing[]> = {};
  for (const picture of report.pictures) {
    pictures[picture.name] = await draw(picture, [answers[picture.query] ?? []].flat());
  }
  return pictures;
}
