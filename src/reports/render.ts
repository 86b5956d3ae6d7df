import type { Reader } from '../warehouse/query.js';
import { type Answers, ask, rowsOf } from './answers.js';
import { cautionsOf, readCoverage } from './coverage.js';
import type { ReportDefinition } from './definition.js';
import { draw, type Drawing } from './draw.js';
import { ConfigurationError } from '../errors.js';
import { modelOf } from './models.js';
import type { Calendar, Period } from './period.js';
import { withImages } from './raster.js';
import { tablesOf } from './tables.js';
import { fillLine, fillTemplate, findTemplates, readPalette } from './templates.js';

interface ReportRequest {
  readonly reader: Reader;
  readonly report: ReportDefinition;
  readonly period: Period;
  readonly calendar: Calendar;
  /** Without a `siteUrl`, paths are not links. */
  readonly project: { readonly id: string; readonly name: string; readonly siteUrl?: string | undefined };
  /** The directory that may hold the workspace's own `templates/`. */
  readonly workspaceDir: string | undefined;
  /** Only the pages whose paths fit, such as `/sdks/**`. */
  readonly where?: string | undefined;
  /** The address of the page; undefined if it is not served. */
  readonly pageUrl?: string | undefined;
  /** The sender of its emails. */
  readonly letterhead?: Letterhead | undefined;
}

export interface Letterhead {
  readonly from: { readonly address: string };
  readonly unsubscribe?: string | undefined;
}

/** A report of one period with its query results. Each form is rendered on demand. */
export interface PreparedReport {
  readonly name: string;
  readonly period: Period;
  readonly subject: string;
  /** The preview text that email clients show after the subject. */
  readonly preheader: string;
  readonly pageUrl: string | null;
  readonly sentBy: string | null;
  /** The data behind every form. */
  readonly model: object;
  /** A self-contained page. */
  readonly page: () => Promise<string>;
  readonly text: () => string;
  /** A few lines of plain text, for a chat. */
  readonly brief: () => string;
  readonly answers: Answers;
  readonly json: () => string;
  readonly mail: () => Promise<ReportMail>;
}

/** A report as the body of an email, regardless of how and to whom it is sent. */
export interface ReportMail {
  readonly subject: string;
  /** The preview text that email clients show after the subject; `html` contains it. */
  readonly preheader: string;
  /** With all CSS inlined; pictures are referenced by `cid:`. */
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly { readonly cid: string; readonly png: Uint8Array }[];
}

/** Runs a report's queries on the history that `reader` reads. Writes nothing. */
export async function prepareReport(request: ReportRequest): Promise<PreparedReport> {
  const { reader, report, period, calendar, workspaceDir, where } = request;
  const { name, title, audience } = report;
  const project = partOf(request);
  const coverage = await readCoverage(reader, request.project, period);
  const parameters = { project: project.id, from: period.first, to: period.last, pages: where ?? '*' };
  const answers = await ask(reader, report.queries, parameters);
  const model = {
    ...{ project, period, cautions: cautionsOf(coverage), coverage },
    ...modelOf(report, answers, { period, calendar, coverage }),
  };
  const pageUrl = request.pageUrl ?? null;
  const general = {
    ...{ report: { name, title, audience }, timezone: calendar.timezone, pageUrl },
    sentBy: sentByWords(request.letterhead),
    tables: tablesOf(report, answers),
  };
  const line = (key: string, text: string) =>
    fillLine(name, `${report.folder}/report.yaml, ${key}`, text, { ...model, ...general });
  const subject = line('subject', report.subject);
  const preheader = line('preheader', report.preheader);
  const shown = { ...model, ...general, subject, preheader };
  const templates = await findTemplates(workspaceDir);
  const text = (): string => fillTemplate(name, 'text', templates, shown);
  return {
    ...{ name, period, subject, preheader, pageUrl, sentBy: general.sentBy, model, answers, text },
    brief: () => fillTemplate(name, 'brief', templates, shown),
    page: async () => {
      const pictures: Record<string, Drawing[]> = {};
      for (const picture of report.pictures)
        pictures[picture.name] = await draw(picture, rowsOf(answers, picture.query));
      const palette = await readPalette(workspaceDir);
      return fillTemplate(name, 'page', templates, { ...shown, palette, pictures });
    },
    json: () => JSON.stringify({ report: name, subject, ...model }, null, 2),
    mail: async () => {
      const palette = await readPalette(workspaceDir);
      const pictures: Record<string, Drawing> = {};
      for (const picture of report.pictures) {
        if (picture.mail === undefined) continue;
        const title = line(`pictures.${picture.name}.mail.alt`, picture.mail.alt);
        const { width } = picture.mail;
        const [drawing] = await draw({ ...picture, title }, rowsOf(answers, picture.query), [
          Math.round(width / ENLARGED),
        ]);
        if (drawing !== undefined) pictures[picture.name] = { width, svg: enlarged(drawing.svg) };
      }
      const filled = fillTemplate(name, 'mail', templates, { ...shown, palette, pictures });
      const mail = await withImages(filled, name, palette);
      return {
        ...{ subject, preheader, html: await inlined(mail.html), pictures: mail.pictures },
        text: signed(text(), general.sentBy),
      };
    },
  };
}

/** Who sends an email, and how to unsubscribe. */
export const sentByWords = (letterhead: Letterhead | undefined): string | null =>
  letterhead === undefined
    ? null
    : `Sent by Readership on behalf of ${letterhead.from.address}. To unsubscribe, ${
        letterhead.unsubscribe === undefined ? 'reply to this email' : `write to ${letterhead.unsubscribe}`
      }.`;

/** The text of an email, with its footer. */
export const signed = (text: string, sentBy: string | null): string =>
  sentBy === null ? text : `${text}\n${sentBy}\n`;

/** The project's name in the report, with the part of the site if the report does not cover all of it. */
function partOf({ project, report, where }: ReportRequest) {
  const { id, name } = project;
  const siteUrl = project.siteUrl ?? null;
  if (where === undefined) return { id, name, siteUrl };
  if (!report.queries.some(({ sql }) => sql.includes('$pages')))
    throw new ConfigurationError(
      `${report.folder}: an audience of this report gets only ${where}, but no query uses $pages. Add AND path GLOB $pages where they read page_views.`,
    );
  return { id, name: `${name} ${where}`, siteUrl };
}

/** Pictures are drawn smaller and then enlarged, to keep text readable on phones, which show them at two thirds. */
const ENLARGED = 1.25;

const enlarged = (svg: string): string =>
  svg.replace(/^<svg [^>]*>/, (tag) =>
    tag.replace(
      / (width|height)="(\d+)"/g,
      (_, side: string, pixels: string) => ` ${side}="${Math.floor(Number(pixels) * ENLARGED)}"`,
    ),
  );

/** The HTML of an email with inlined styles, as email clients require. */
export async function inlined(html: string): Promise<string> {
  // Loaded on demand, because only emails need it.
  const { inline } = await import('@css-inline/css-inline');
  return inline(html, { keepAtRules: true, removeInlinedSelectors: true, loadRemoteStylesheets: false });
}
