import type { CurrentSelection, SelectNow } from '../agents/plan.js';
import { type Palette, readPalette, withImages } from '../charts/images.js';
import { problemOf } from '../config/problems.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { dayOf } from '../day.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { asInvoked, type Invocation, pageAsInvoked } from '../format/advice.js';
import { chatMessageIn, plainText } from '../format/chat.js';
import { dateOf, type Reader } from '../history/duckdb.js';
import { type QueryRows, ROWS_IN_MAIL, runQueries, tablesOf } from './answers.js';
import { chartsOf, readNotes } from './charts.js';
import { cautionsOf, type ModelContext, readCoverage } from './coverage.js';
import { type ReportDefinition, shows } from './definition.js';
import { improveModel } from './improve.js';
import { linksOf } from './report-pages.js';
import type { Period } from './period.js';
import { fillLine, fillTemplate, findTemplates } from './templates.js';
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
export type ReportedProject = Pick<ProjectSettings, 'id' | 'name' | 'siteUrl'>;

export interface ReportRequest {
  readonly report: ReportDefinition;
  readonly period: Period;
  /** Only the pages whose paths fit, such as `/sdks/**`. */
  readonly where?: string | undefined;
  /** When it is written: the states of jobs are as of then. */
  readonly now: Date;
  /** Used by a report that lists the pages up next for agents; by default, they are those of the last selection. */
  readonly selectNow?: SelectNow;
  /** To show besides the cautions about its numbers. */
  readonly cautions?: readonly string[];
  /** Periods before it that no email was sent about, which an email names. */
  readonly unsent?: readonly Period[];
}

/** A report of one period with its query results. Each form is rendered on demand. */
export type PreparedReport = Awaited<ReturnType<typeof prepareReport>>;

/** Runs a report's queries about a project on the history that `reader` reads. Writes nothing. */
export async function prepareReport(
  place: ReportPlace,
  reader: Reader,
  project: ReportedProject,
  { report, period, where, now, selectNow, cautions = [], unsent = [] }: ReportRequest,
) {
  const { name, title, audience } = report;
  const { reports, serve } = place.settings;
  const { timezone } = reports;
  const part = { ...partOf(project, where), webApp: serve?.url ?? null };
  const coverage = await readCoverage(reader, project, period);
  const days = { from: dateOf(period.first), to: dateOf(period.last) };
  const parameters = { project: project.id, ...days, pages: where ?? '*' };
  const answers = await runQueries(reader, report.queries, parameters);
  const selection = report.model === 'improve' ? await selectNow?.(project) : undefined;
  const model = {
    project: part,
    period,
    writtenOn: dayOf(now),
    cautions: [...cautionsOf(coverage), ...cautions],
    coverage,
    ...modelOf(report, answers, { period, calendar: reports, coverage }, selection),
  };
  const hasLines = report.queries.some((query) => shows(query, 'lines'));
  const events = hasLines ? await readNotes(reader, project.id) : [];
  const charts = chartsOf(report, answers, timezone, events);
  const links = linksOf(place.settings, project, { name, period });
  const shownIn = (form: Form) => ({
    ...model,
    report: { name, title, audience },
    timezone,
    links,
    unsent: unsent.map((range) => ({
      range,
      page: linksOf(place.settings, project, { name, period: range }).page,
    })),
    charts,
    /** Formatted only for templates that show them. */
    tables: () => tablesOf(report, answers, charts, timezone, form === 'page' ? Infinity : ROWS_IN_MAIL),
  });
  const line = (key: string, text: string) =>
    fillLine(name, `${report.folder}/report.yaml, ${key}`, text, shownIn('text'));
  const subject = line('subject', report.subject);
  /** The preview text that email clients show after the subject. */
  const preheader = line('preheader', report.preheader);
  const heading = { subject, preheader, pageUrl: links.page };
  return {
    name,
    period,
    ...heading,
    /** The subject without the dates, which a digest has once. */
    news: () => line('subject', report.subject.replace(/,? \{\{plainDayRange period\}\}/, '')),
    model,
    answers,
    json: () => JSON.stringify({ report: name, subject, ...model }, null, 2),
    ...(await formsOf(place, name, heading, shownIn)),
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
function modelOf(
  report: ReportDefinition,
  answers: QueryRows,
  context: ModelContext,
  selection?: CurrentSelection,
) {
  try {
    switch (report.model) {
      case 'weekly':
        return weeklyModel(answers, context);
      case 'improve':
        return improveModel(answers, selection);
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

/** What the forms of a report are for: a page, an email that looks the same, and plain text. */
type Form = 'page' | 'email' | 'text';

interface Heading {
  readonly subject: string;
  readonly preheader: string;
  /** The address of the page; null if it is not served. */
  readonly pageUrl: string | null;
}

/** The forms of a report, each filled when it is asked for, from what `shownIn` says is shown in it. */
export async function formsOf(
  { settings, workspaceDir, invocation }: ReportPlace,
  name: string,
  heading: Heading,
  shownIn: (form: Form) => object,
) {
  const templates = await findTemplates(workspaceDir);
  const { subject, pageUrl } = heading;
  const sentBy = sentByWords(settings.mail);
  const html = (form: Form, palette: Palette): string => {
    const isEmail = form === 'email';
    const model = {
      ...shownIn(form),
      ...heading,
      pageUrl: isEmail ? pageUrl : null,
      palette,
      isEmail,
      sentBy,
    };
    return pageAsInvoked(fillTemplate(name, 'html', templates, model), invocation);
  };
  const markedText = (): string =>
    asInvoked(fillTemplate(name, 'text', templates, { ...shownIn('text'), ...heading }), invocation);
  const text = (): string => plainText(markedText());
  return {
    text,
    /** The first part of the text, for a chat, with its links marked. */
    chat: () => chatMessageIn(markedText()),
    /** A self-contained page. */
    page: async () => html('page', await readPalette(workspaceDir)),
    /** The page as email clients show it, with all CSS inlined and its pictures as `cid:`, and the text. */
    email: async () => {
      const palette = await readPalette(workspaceDir);
      const { html: filled, pictures } = await withImages(html('email', palette), name, palette);
      // Loaded on demand, because only emails need it.
      const { inline } = await import('@css-inline/css-inline');
      const options = { keepAtRules: true, removeInlinedSelectors: true, loadRemoteStylesheets: false };
      const browser = pageUrl === null ? [] : [`Open in the browser: ${pageUrl}\n`];
      const lines = [text(), ...browser, ...(sentBy === null ? [] : [sentBy])];
      return {
        subject,
        html: inline(filled, options),
        pictures,
        text: lines.join('\n').replace(/\n*$/, '\n'),
      };
    },
  };
}
