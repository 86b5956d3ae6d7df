import { z } from 'zod';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import type { Parameters, Reader } from '../warehouse/query.js';
import type { Picture, Query, ReportDefinition } from './catalog.js';
import { draw, rasterize, type Drawing } from './draw.js';
import { improveModel } from './improve.js';
import type { Calendar, Period } from './period.js';
import { fillLine, fillTemplate, findTemplates, readPalette, type Templates } from './templates.js';
import { weeklyModel } from './weekly/model.js';

interface ReportRequest {
  readonly reader: Reader;
  readonly report: ReportDefinition;
  readonly period: Period;
  readonly calendar: Calendar;
  /** `siteUrl` is where its pages are; without it, paths are not links. */
  readonly project: { readonly id: string; readonly name: string; readonly siteUrl?: string | undefined };
  /** Where the workspace's own `templates/` are looked for. */
  readonly workspaceDir: string | undefined;
}

/** A report of one period with its questions answered. Each form is rendered when it is asked for. */
export interface PreparedReport {
  readonly name: string;
  readonly period: Period;
  readonly subject: string;
  /** What every form shows, as data. */
  readonly model: object;
  /** A whole page that needs nothing else. */
  readonly page: () => Promise<string>;
  readonly text: () => string;
  readonly json: () => string;
  readonly mail: () => Promise<ReportMail>;
}

/** A report as the body of an email. How it is sent, and to whom, is not known here. */
export interface ReportMail {
  readonly subject: string;
  /** What email clients show beside the subject in their list. It is in `html` already. */
  readonly preheader: string;
  /** With all CSS inlined; pictures are named by `cid:`. */
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly MailPicture[];
}

interface MailPicture {
  /** Without the angle brackets of the Content-ID header. */
  readonly cid: string;
  /** Opaque, at twice `width`. */
  readonly png: Uint8Array;
  /** In CSS pixels. */
  readonly width: number;
  /** The data in words, for readers who see no pictures. */
  readonly alt: string;
}

const rowSchema = z.record(z.string(), z.json());
type Row = z.infer<typeof rowSchema>;

/** What each query of a report answered: its one row, or all of them. */
type Answers = Readonly<Record<string, Row | Row[]>>;

/** Asks a report's questions of the history that `reader` answers from. Writes nothing. */
export async function prepareReport(request: ReportRequest): Promise<PreparedReport> {
  const { reader, report, period, calendar, workspaceDir } = request;
  const { name, title } = report;
  const project = { ...request.project, siteUrl: request.project.siteUrl ?? null };
  const parameters = { project: project.id, from: period.first, to: period.last };
  const answers: Record<string, Row | Row[]> = {};
  for (const query of report.queries) answers[query.name] = await ask(reader, query, parameters);
  const model = { project, period, ...modelOf(report, answers, { project, period, calendar }) };
  const subject = fillLine(name, sourceOf(report, 'subject'), report.subject, model);
  const shown = { ...model, report: { name, title }, subject, timezone: calendar.timezone };
  const templates = await findTemplates(workspaceDir);
  const text = (): string => fillTemplate(name, 'text', templates, shown);
  return {
    ...{ name, period, subject, model, text },
    page: async () => {
      const pictures: Record<string, Drawing[]> = {};
      for (const picture of report.pictures)
        pictures[picture.name] = await draw(picture, rowsFor(picture, answers));
      const palette = await readPalette(workspaceDir);
      return fillTemplate(name, 'page', templates, { ...shown, palette, pictures });
    },
    json: () => JSON.stringify({ report: name, subject, ...model }, null, 2),
    mail: async () => composeMail(report, answers, templates, workspaceDir, { ...shown, text: text() }),
  };
}

/** Asks one query. An error names its file. */
async function ask(reader: Reader, { file, sql, rows }: Query, parameters: Parameters): Promise<Row | Row[]> {
  const found = await reader.query(sql, rowSchema, parameters).catch((cause: unknown) => {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(`${file}: ${problemOf(cause)}`, { cause });
  });
  if (rows === 'many') return found;
  const [only, ...more] = found;
  if (only !== undefined && more.length === 0) return only;
  throw new ConfigurationError(
    `${file}: returned ${found.length} rows, but report.yaml says that it returns one`,
  );
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
    throw new ConfigurationError(
      `${report.folder}: the queries do not return what the ${report.model} model needs: ${problemOf(cause)}`,
      { cause },
    );
  }
}

const rowsFor = ({ query }: Picture, answers: Answers): Row[] => [answers[query] ?? []].flat();

/** Where a one-line template is written, for errors. */
const sourceOf = ({ folder }: ReportDefinition, key: string): string => `${folder}/report.yaml, ${key}`;

/** Pixels of a picture for each pixel of the email: sharp on phones. */
const DENSITY = 2;

/** Pictures are drawn smaller and enlarged, since phones show them at two thirds and the text must stay readable. */
const ENLARGED = 1.25;

/** Composes the email of a report: the same model as the page, in tables that old email clients show well. */
async function composeMail(
  report: ReportDefinition,
  answers: Answers,
  templates: Templates,
  workspaceDir: string | undefined,
  model: { readonly subject: string; readonly text: string },
): Promise<ReportMail> {
  const { name } = report;
  const palette = await readPalette(workspaceDir);
  const pictures: Record<string, MailPicture> = {};
  for (const picture of report.pictures) {
    if (picture.mail === undefined) continue;
    const { width, alt } = picture.mail;
    const [drawing] = await draw(picture, rowsFor(picture, answers), [Math.round(width / ENLARGED)]);
    if (drawing === undefined) continue;
    pictures[picture.name] = {
      cid: `${name}.${picture.name}@readership`,
      png: await rasterize(drawing.svg, DENSITY * width, palette.light),
      width,
      alt: fillLine(name, sourceOf(report, `pictures.${picture.name}.mail.alt`), alt, model),
    };
  }
  const preheader = fillLine(name, sourceOf(report, 'preheader'), report.preheader, model);
  const filled = fillTemplate(name, 'mail', templates, { ...model, palette, pictures, preheader });
  // Only emails need this library, so only they load it.
  const { inline } = await import('@css-inline/css-inline');
  const html = inline(filled, {
    keepAtRules: true,
    removeInlinedSelectors: true,
    loadRemoteStylesheets: false,
  });
  const { subject, text } = model;
  return { subject, preheader, html, text, pictures: Object.values(pictures) };
}
