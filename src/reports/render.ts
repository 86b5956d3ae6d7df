import { z } from 'zod';
import { problemOf } from '../config/problems.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { dateOf, type Reader } from '../warehouse/query.js';
import { type Answers, ask, rowsOf, tablesOf } from './answers.js';
import { cautionsOf, type ModelContext, readCoverage } from './coverage.js';
import { wordsOf } from './correction.js';
import type { ModelName, ReportDefinition } from './definition.js';
import { draw, drawForMail, type Drawing } from './draw.js';
import { improveModel } from './improve.js';
import { pageUrl } from './pages.js';
import type { Period } from './period.js';
import { withImages } from './raster.js';
import { fillLine, fillTemplate, findTemplates, readPalette, type TemplateForm } from './templates.js';
import { weeklyModel } from './weekly/model.js';

/** Where reports are rendered: the settings that affect them, and the workspace's own templates. */
export interface ReportPlace {
  readonly settings: Pick<Settings, 'mail' | 'reports'>;
  /** The directory that may hold the workspace's own `templates/`. */
  readonly workspaceDir: string | undefined;
}

/** Without a `siteUrl`, paths are not links. */
type ReportedProject = Pick<ProjectSettings, 'id' | 'name' | 'siteUrl'>;

interface ReportRequest {
  readonly report: ReportDefinition;
  readonly period: Period;
  /** Only the pages whose paths fit, such as `/sdks/**`. */
  readonly where?: string | undefined;
}

/** A report of one period with its query results. Each form is rendered on demand. */
export type PreparedReport = Awaited<ReturnType<typeof prepareReport>>;

/** A report as the body of an email, regardless of how and to whom it is sent. */
export type ReportMail = Awaited<ReturnType<PreparedReport['mail']>>;

/** Runs a report's queries about a project on the history that `reader` reads. Writes nothing. */
export async function prepareReport(
  { settings, workspaceDir }: ReportPlace,
  reader: Reader,
  project: ReportedProject,
  { report, period, where }: ReportRequest,
) {
  const { name, title, audience } = report;
  const calendar = settings.reports;
  const part = partOf(project, report, where);
  const coverage = await readCoverage(reader, project, period);
  const days = { from: dateOf(period.first), to: dateOf(period.last) };
  const parameters = { project: project.id, ...days, pages: where ?? '*' };
  const answers = await ask(reader, report.queries, parameters);
  const model = {
    project: part,
    period,
    cautions: cautionsOf(coverage),
    coverage,
    ...modelOf(report, answers, { period, calendar, coverage }),
  };
  const url = pageUrl(settings.reports.baseUrl, project.id, { name, period });
  const sentBy = sentByWords(settings.mail);
  const general = {
    report: { name, title, audience },
    timezone: calendar.timezone,
    pageUrl: url,
    sentBy,
    tables: tablesOf(report, answers, calendar.timezone),
  };
  const line = (key: string, text: string) =>
    fillLine(name, `${report.folder}/report.yaml, ${key}`, text, { ...model, ...general });
  const subject = line('subject', report.subject);
  /** The preview text that email clients show after the subject. */
  const preheader = line('preheader', report.preheader);
  const shown = { ...model, ...general, subject, preheader };
  const templates = await findTemplates(workspaceDir);
  const text = (): string => fillTemplate(name, 'text', templates, shown);
  return {
    name,
    period,
    subject,
    preheader,
    pageUrl: url,
    model,
    answers,
    text,
    /** What it says, for a later correction. */
    words: (of: Parameters<typeof wordsOf>[1]) => wordsOf({ model, tables: general.tables }, of),
    /** A few lines of plain text, for a chat. */
    brief: () => fillTemplate(name, 'brief', templates, shown),
    /** A self-contained page. */
    page: async () => {
      const pictures: Record<string, Drawing[]> = {};
      for (const picture of report.pictures) {
        const drawings: Drawing[] = [];
        for (const width of picture.widths)
          drawings.push(await draw(picture, rowsOf(answers, picture.query), width));
        pictures[picture.name] = drawings;
      }
      const palette = await readPalette(workspaceDir);
      return fillTemplate(name, 'page', templates, { ...shown, palette, pictures });
    },
    json: () => JSON.stringify({ report: name, subject, ...model }, null, 2),
    /** HTML with all CSS inlined and pictures referenced by `cid:`, and the same as text. */
    mail: async () => {
      const palette = await readPalette(workspaceDir);
      const pictures: Record<string, Drawing> = {};
      for (const picture of report.pictures) {
        if (picture.mail === undefined) continue;
        const title = line(`pictures.${picture.name}.mail.alt`, picture.mail.alt);
        const rows = rowsOf(answers, picture.query);
        pictures[picture.name] = await drawForMail({ ...picture, title }, rows, picture.mail.width);
      }
      const filled = fillTemplate(name, 'mail', templates, { ...shown, palette, pictures });
      const mail = await withImages(filled, name, palette);
      return {
        subject,
        preheader,
        html: await inlined(mail.html),
        pictures: mail.pictures,
        text: signed(text(), sentBy),
      };
    },
  };
}

/** Who sends an email, and how to unsubscribe. */
function sentByWords(mail: Settings['mail']): string | null {
  if (mail === undefined) return null;
  const { from, unsubscribe } = mail;
  const how = unsubscribe === undefined ? 'reply to this email' : `write to ${unsubscribe}`;
  return `Sent by Readership on behalf of ${from.address}. To unsubscribe, ${how}.`;
}

/** The text of an email, with its footer. */
const signed = (text: string, sentBy: string | null): string =>
  sentBy === null ? text : `${text}\n${sentBy}\n`;

/** The project's name in the report, with the part of the site if the report does not cover all of it. */
function partOf({ id, name, siteUrl }: ReportedProject, report: ReportDefinition, where: string | undefined) {
  const project = { id, name, siteUrl: siteUrl ?? null };
  if (where === undefined) return project;
  if (!report.queries.some(({ sql }) => sql.includes('$pages')))
    throw new ConfigurationError(
      `${report.folder}: an audience of this report gets only ${where}, but no query uses $pages. Add AND path GLOB $pages where they read page_views.`,
    );
  return { ...project, name: `${name} ${where}` };
}

/** The HTML of an email with inlined styles, as email clients require. */
async function inlined(html: string): Promise<string> {
  // Loaded on demand, because only emails need it.
  const { inline } = await import('@css-inline/css-inline');
  return inline(html, { keepAtRules: true, removeInlinedSelectors: true, loadRemoteStylesheets: false });
}

/** Turns query results into sentences and figures, for templates that show more than rows. */
type Model = (answers: Answers, context: ModelContext) => object;

const MODEL_OF: Readonly<Record<ModelName, Model>> = { weekly: weeklyModel, improve: improveModel };

/** What templates get besides the project and period: the report's model, or else its rows. */
function modelOf(report: ReportDefinition, answers: Answers, context: ModelContext): object {
  if (report.model === undefined) return { rows: answers };
  try {
    return MODEL_OF[report.model](answers, context);
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(
      `${report.folder}: the queries do not return what the ${report.model} model needs: ${problemOf(cause)}`,
      { cause },
    );
  }
}

/** The text and HTML of the templates with that name, filled with a model, as an email without pictures. */
export async function filledMail(
  { settings, workspaceDir }: ReportPlace,
  name: string,
  given: { readonly subject: string; readonly [field: string]: unknown },
) {
  const [templates, palette] = await Promise.all([findTemplates(workspaceDir), readPalette(workspaceDir)]);
  const model = { ...given, palette, sentBy: sentByWords(settings.mail) };
  const fill = (form: TemplateForm) => fillTemplate(name, form, templates, model);
  return {
    text: () => fill('text'),
    /** A few lines of plain text, for a chat. */
    brief: () => fill('brief'),
    mail: async () => ({
      subject: given.subject,
      pictures: [],
      text: signed(fill('text'), model.sentBy),
      html: await inlined(fill('mail')),
    }),
  };
}

const withStake = z.object({ stake: z.number() });

/** Reports about several projects as one email, the largest news first: its headline is the subject. */
export async function digestOf(
  place: ReportPlace,
  { report: { title }, period }: ReportRequest,
  reports: readonly PreparedReport[],
) {
  const dates = plainDayRange(period);
  const stakeOf = ({ model }: PreparedReport): number => withStake.safeParse(model).data?.stake ?? 0;
  const [first, ...parts] = reports
    .toSorted((one, two) => stakeOf(two) - stakeOf(one))
    // The dates stand once, in the subject and at the top.
    .map(({ subject, preheader, pageUrl }) => ({
      news: subject.replace(`, ${dates}`, '').replace(` ${dates}`, ''),
      preheader,
      pageUrl,
    }));
  const others = parts.length === 0 ? '' : `; ${counted(parts.length, 'more project')}`;
  const subject = `${title}, ${dates}: ${first?.news ?? ''}${others}`;
  const preheader = first?.preheader ?? '';
  const model = { subject, preheader, period, first, parts, report: { title }, pageUrl: null };
  const { text, mail } = await filledMail(place, 'digest', model);
  const projects = reports.map(({ model }) => model);
  return { subject, pageUrl: null, model: { projects }, brief: text, mail };
}
