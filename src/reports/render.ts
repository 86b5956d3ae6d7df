import type { CurrentSelection, SelectNow } from '../agents/plan.js';
import { type Palette, readPalette, withImages } from '../charts/images.js';
import { problemOf } from '../config/problems.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { dayOf } from '../day.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { asInvoked, type Invocation, pageAsInvoked } from '../format/advice.js';
import { chatMessageIn, plainText } from '../format/chat.js';
import { dateOf, type Reader } from '../history/duckdb.js';
import { plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { type QueryRows, ROWS_IN_MAIL, runQueries, tablesOf } from './answers.js';
import { chartsOf, readNotes } from './charts.js';
import { cautionsOf, type NothingLoadedError, readCoverage } from './coverage.js';
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
  const { settings } = place;
  const { timezone } = settings.reports;
  const coverage = await readCoverage(reader, project, period);
  const days = { from: dateOf(period.first), to: dateOf(period.last) };
  const parameters = { project: project.id, ...days, pages: where ?? '*' };
  const answers = await runQueries(reader, report.queries, parameters);
  const selection = report.model === 'improve' ? await selectNow?.(project) : undefined;
  const model = {
    project: {
      id: project.id,
      name: where === undefined ? project.name : `${project.name} ${where}`,
      siteUrl: project.siteUrl ?? null,
      webApp: settings.serve?.url ?? null,
    },
    period,
    writtenOn: dayOf(now),
    cautions: [...cautionsOf(coverage), ...cautions],
    coverage,
    ...modelOf(report, answers, { period, calendar: settings.reports, coverage }, selection),
  };
  const hasLines = report.queries.some((query) => shows(query, 'lines'));
  const events = hasLines ? await readNotes(reader, project.id) : [];
  const charts = chartsOf(report, answers, timezone, events);
  const linksTo = (period: Period) => linksOf(settings, project, { name, period });
  const links = linksTo(period);
  const shownIn = (form: Form) => ({
    ...model,
    report: { name, title, audience },
    timezone,
    links,
    unsent: unsent.map((range) => ({ range, page: linksTo(range).page })),
    charts,
    /** Formatted only for templates that show them. */
    tables: () => tablesOf(report, answers, charts, timezone, form === 'page' ? Infinity : ROWS_IN_MAIL),
  });
  const line = (key: string, text: string) =>
    fillLine(name, `${report.folder}/report.yaml, ${key}`, text, shownIn('text'));
  const heading = {
    subject: line('subject', report.subject),
    preheader: line('preheader', report.preheader),
    pageUrl: links.page,
  };
  return {
    name,
    period,
    ...heading,
    /** The subject without the dates, which a digest has once. */
    news: () => line('subject', report.subject.replace(/,? \{\{plainDayRange period\}\}/, '')),
    model,
    json: () => JSON.stringify({ report: name, subject: heading.subject, ...model }, null, 2),
    ...(await formsOf(place, name, heading, shownIn)),
  };
}

/**
 * Reports about several projects as one email, the largest news first: its headline is the subject. Then come the projects
 * with nothing loaded for the period.
 */
export async function digestOf(
  place: ReportPlace,
  { report: { title }, period, cautions = [], unsent = [] }: ReportRequest,
  reports: readonly PreparedReport[],
  empty: readonly { readonly item: ReportedProject; readonly error: NothingLoadedError }[],
) {
  const stakeOf = ({ model }: PreparedReport): number => ('stake' in model ? model.stake : 0);
  const editions = reports
    .toSorted((one, two) => stakeOf(two) - stakeOf(one))
    .map(({ news, preheader, pageUrl }) => ({ news: news(), preheader, pageUrl }));
  const [first] = editions;
  const without = empty.map(({ item: { id, name }, error: { history } }) => ({ id, name, history }));
  const more = editions.length + without.length - 1;
  const others = more === 0 ? '' : `; ${counted(more, 'more project')}`;
  const subject = `${title}, ${plainDayRange(period)}: ${first?.news ?? ''}${others}`;
  const { serve } = place.settings;
  const pageUrl = serve?.url === undefined ? null : `${serve.url}/reports`;
  const heading = { subject, preheader: first?.preheader ?? '', pageUrl };
  const shown = {
    period,
    cautions,
    unsent: unsent.map((range) => ({ range, page: pageUrl })),
    editions,
    without,
    others: more,
    report: { title },
  };
  const { chat, email } = await formsOf(place, 'digest', heading, () => shown);
  const model = { projects: reports.map(({ model }) => model), without };
  return { subject, pageUrl, model, chat, email };
}

/** What templates get besides the project and period: the report's model, or else its rows. */
function modelOf(
  report: ReportDefinition,
  answers: QueryRows,
  context: Parameters<typeof weeklyModel>[1],
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
  /** The preview text that email clients show after the subject. */
  readonly preheader: string;
  /** The address of the page; null if it is not served. */
  readonly pageUrl: string | null;
}

/** The forms of a report, each filled when it is asked for, from what `shownIn` says is shown in it. */
async function formsOf(
  { settings, workspaceDir, invocation }: ReportPlace,
  name: string,
  heading: Heading,
  shownIn: (form: Form) => object,
) {
  const templates = await findTemplates(workspaceDir);
  const { subject, pageUrl } = heading;
  const { mail } = settings;
  const sentBy = mail
    ? `Sent by Readership on behalf of ${mail.from.address}. To unsubscribe, reply to this email.`
    : null;
  const html = (form: Form, palette: Palette): string => {
    const isEmail = form === 'email';
    const around = { pageUrl: isEmail ? pageUrl : null, palette, isEmail, sentBy };
    const model = { ...shownIn(form), ...heading, ...around };
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
      const lines = [text(), pageUrl && `Open in the browser: ${pageUrl}\n`, sentBy];
      return {
        subject,
        html: inline(filled, options),
        pictures,
        text: lines
          .filter((line) => line !== null)
          .join('\n')
          .replace(/\n*$/, '\n'),
      };
    },
  };
}
