import { withImages } from '../charts/images.js';
import { readPalette } from '../charts/palette.js';
import { problemOf } from '../config/problems.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { asInvoked, type Invocation, pageAsInvoked } from '../format/advice.js';
import { plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { dateOf, type Reader } from '../history/query.js';
import { type QueryRows, runQueries } from './answers.js';
import { chartsOf, readNotes } from './charts.js';
import { cautionsOf, type ModelContext, readCoverage } from './coverage.js';
import { type ReportDefinition, shows } from './definition.js';
import { improveModel } from './improve.js';
import { linksOf } from './links.js';
import type { Period } from './period.js';
import { tablesOf } from './tables.js';
import { fillLine, fillTemplate, findTemplates, type TemplateForm } from './templates.js';
import { weeklyModel } from './weekly/model.js';

/** Where reports are rendered: the settings that affect them, and the workspace's own templates. */
export interface ReportPlace {
  readonly settings: Pick<Settings, 'improve' | 'mail' | 'reports' | 'serve'>;
  /** The directory that may hold the workspace's own `templates/`. */
  readonly workspaceDir: string | undefined;
  /** What the commands that a report advises repeat. */
  readonly invocation: Invocation;
}

/** Without a `siteUrl`, paths are not links. */
type ReportedProject = Pick<ProjectSettings, 'id' | 'name' | 'siteUrl'>;

interface ReportRequest {
  readonly report: ReportDefinition;
  readonly period: Period;
  /** Only the pages whose paths fit, such as `/sdks/**`. */
  readonly where?: string | undefined;
  /** To show besides the cautions about its numbers. */
  readonly cautions?: readonly string[];
}

/** A report of one period with its query results. Each form is rendered on demand. */
export type PreparedReport = Awaited<ReturnType<typeof prepareReport>>;

/** Runs a report's queries about a project on the history that `reader` reads. Writes nothing. */
export async function prepareReport(
  place: ReportPlace,
  reader: Reader,
  project: ReportedProject,
  { report, period, where, cautions = [] }: ReportRequest,
) {
  const { name, title, audience } = report;
  const { reports, serve } = place.settings;
  const { timezone } = reports;
  const part = { ...partOf(project, where), webApp: serve?.url ?? null };
  const coverage = await readCoverage(reader, project, period);
  const days = { from: dateOf(period.first), to: dateOf(period.last) };
  const parameters = { project: project.id, ...days, pages: where ?? '*' };
  const answers = await runQueries(reader, report.queries, parameters);
  const model = {
    project: part,
    period,
    cautions: [...cautionsOf(coverage), ...cautions],
    coverage,
    ...modelOf(report, answers, { period, calendar: reports, coverage }),
  };
  const hasLines = report.queries.some((query) => shows(query, 'lines'));
  const events = hasLines ? await readNotes(reader, project.id) : [];
  const charts = chartsOf(report, answers, timezone, events);
  const links = linksOf(place.settings, project, { name, period });
  /** Formatted only for templates that show them. */
  const tables = () => tablesOf(report, answers, charts, timezone);
  const shown = {
    ...model,
    report: { name, title, audience },
    timezone,
    links,
    pageUrl: links.page,
    charts,
    tables,
  };
  const line = (key: string, text: string) =>
    fillLine(name, `${report.folder}/report.yaml, ${key}`, text, shown);
  const subject = line('subject', report.subject);
  /** The preview text that email clients show after the subject. */
  const preheader = line('preheader', report.preheader);
  const forms = await formsOf(place, name, { ...shown, subject, preheader });
  return {
    name,
    period,
    subject,
    /** The subject without the dates, which a digest has once. */
    news: () => line('subject', report.subject.replace(/,? \{\{plainDayRange period\}\}/, '')),
    preheader,
    pageUrl: links.page,
    model,
    answers,
    text: forms.text,
    brief: forms.brief,
    /** A self-contained page. */
    page: forms.page,
    json: () => JSON.stringify({ report: name, subject, ...model }, null, 2),
    mail: forms.mail,
  };
}

/** Who sends an email, and how to unsubscribe. */
function sentByWords(mail: Settings['mail']): string | null {
  if (mail === undefined) return null;
  return `Sent by Readership on behalf of ${mail.from.address}. To unsubscribe, reply to this email.`;
}

/** The project's name in the report, with the part of the site if the report does not cover all of it. */
function partOf({ id, name, siteUrl }: ReportedProject, where: string | undefined) {
  const project = { id, name, siteUrl: siteUrl ?? null };
  return where === undefined ? project : { ...project, name: `${name} ${where}` };
}

/** What templates get besides the project and period: the report's model, or else its rows. */
function modelOf(report: ReportDefinition, answers: QueryRows, context: ModelContext) {
  try {
    switch (report.model) {
      case 'weekly':
        return weeklyModel(answers, context);
      case 'improve':
        return improveModel(answers);
      case undefined:
        return { rows: answers };
    }
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(
      `${report.folder}: the queries do not return what the ${report.model} model needs: ${problemOf(cause)}`,
      { cause },
    );
  }
}

/** A model in the forms that templates of that name give it. */
export async function formsOf(
  { settings, workspaceDir, invocation }: ReportPlace,
  name: string,
  model: { readonly subject: string; readonly pageUrl: string | null; readonly [field: string]: unknown },
) {
  const templates = await findTemplates(workspaceDir);
  const sentBy = sentByWords(settings.mail);
  const fill = (form: TemplateForm, more: object = {}): string => {
    const filled = fillTemplate(name, form, templates, { ...model, sentBy, ...more });
    return (form === 'text' || form === 'brief' ? asInvoked : pageAsInvoked)(filled, invocation);
  };
  return {
    text: () => fill('text'),
    /** A few lines of plain text, for a chat. */
    brief: () => fill('brief'),
    page: async () => fill('page', { palette: await readPalette(workspaceDir) }),
    /** HTML with all CSS inlined, as email clients require, and pictures referenced by `cid:`, and the same as text. */
    mail: async () => {
      const palette = await readPalette(workspaceDir);
      const filled = fill('mail', { palette });
      const { html, pictures } = await withImages(filled, name, palette);
      // Loaded on demand, because only emails need it.
      const { inline } = await import('@css-inline/css-inline');
      const options = { keepAtRules: true, removeInlinedSelectors: true, loadRemoteStylesheets: false };
      return {
        subject: model.subject,
        html: inline(html, options),
        pictures,
        text: [
          fill('text'),
          model.pageUrl === null ? [] : `Open in the browser: ${model.pageUrl}\n`,
          sentBy ?? [],
        ]
          .flat()
          .join('\n')
          .replace(/\n*$/, '\n'),
      };
    },
  };
}

/** Reports about several projects as one email, the largest news first: its headline is the subject. */
export async function digestOf(
  place: ReportPlace,
  { report: { title }, period, cautions = [] }: ReportRequest,
  reports: readonly PreparedReport[],
) {
  const stakeOf = ({ model }: PreparedReport): number => ('stake' in model ? model.stake : 0);
  const editions = reports
    .toSorted((one, two) => stakeOf(two) - stakeOf(one))
    .map(({ news, preheader, pageUrl }) => ({ news: news(), preheader, pageUrl }));
  const [first] = editions;
  const others = editions.length === 1 ? '' : `; ${counted(editions.length - 1, 'more project')}`;
  const subject = `${title}, ${plainDayRange(period)}: ${first?.news ?? ''}${others}`;
  const preheader = first?.preheader ?? '';
  const model = { subject, preheader, period, cautions, editions, report: { title }, pageUrl: null };
  const { text, mail } = await formsOf(place, 'digest', model);
  const projects = reports.map(({ model }) => model);
  return { subject, pageUrl: null, model: { projects }, brief: text, mail };
}
