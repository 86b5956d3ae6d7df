import { z } from 'zod';
import { readJobsWithEffects } from '../agents/job-effects.js';
import { addDays } from '../day.js';
import { StorageError } from '../errors.js';
import { thousands } from '../format/numbers.js';
import { pageOf } from '../page.js';
import { findReport } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import type { Rows } from '../sql/query-processes.js';
import { readDictionary } from '../sql/dictionary.js';
import { rowSchema } from '../history/duckdb.js';
import { marksOf } from './site-pages.js';
import { CHOICES, scopeOf } from './query.js';
import { rowsOf } from './request.js';
import { knownPage, projectTool, tool, type Tool } from './tool.js';

const text = z.string();
const textOrNull = text.nullable();
const numberOrNull = z.number().nullable();
const flagOrNull = z.boolean().nullable();
const list = <Fields extends z.ZodRawShape>(fields: Fields) => z.array(z.object(fields));

/** As the macro `changes` defines them. */
const changeOf = z.object({
  path: text.nullish(),
  human: numberOrNull,
  ai: numberOrNull,
  ai_share: numberOrNull,
  days_loaded: z.int().nullable(),
  days_before: z.int().nullable(),
  outages: z.array(text).optional().describe('days without any view, by which no page is judged'),
  human_before: numberOrNull,
  ai_before: numberOrNull,
  human_change: numberOrNull.describe('0.1 is 10% more; per loaded day if days are missing'),
  ai_change: numberOrNull,
  human_moved: flagOrNull.optional().describe('listed under What moved; null unless the days are seven'),
  ai_moved: flagOrNull.optional(),
  is_new: flagOrNull.optional(),
});

const MAX_ROWS = 1_000;
/** Fewer than an answer may have, for its names and notes. */
const MAX_QUERY_CHARACTERS = 35_000;

/** Tools by name. Each needs its words in `assistant.yaml`, and a row in docs/mcp.md. */
export const TOOLS: Readonly<Record<string, Tool>> = {
  query: tool(
    { sql: z.string().max(20_000), maxRows: z.int().min(1).max(MAX_ROWS).default(200) },
    { rows: z.array(rowSchema) },
    async ({ sql, maxRows }, { queries, asker }) => {
      const limits = { maxRows, maxCharacters: MAX_QUERY_CHARACTERS };
      const answer = await queries.ask(sql, limits, asker.signal);
      return { rows: answer.rows, note: answer.isCut ? cutWords(answer) : answer.note };
    },
  ),

  describe: tool(
    { name: z.string().optional().describe('of a table, view or macro, such as site_weeks') },
    {
      projects: list({ id: text, name: text, site: textOrNull, coverage: rowSchema.nullable() }),
      entries: list({ name: text, kind: text, comment: text, columns: z.array(rowSchema).optional() }),
    },
    async ({ name }, { sources: { history, workspace }, asker }) => {
      const [all, coverage] = await history.with(asker, (reader) =>
        Promise.all([readDictionary(reader), rowsOf(reader, 'coverage', {})]),
      );
      const projects = workspace.projects.map((project) => ({
        id: project.id,
        name: project.name,
        site: project.siteUrl ?? null,
        coverage: coverage.find((row) => row['project'] === project.id) ?? null,
      }));
      if (name === undefined)
        return { projects, entries: all.map((entry) => ({ ...entry, columns: undefined })) };
      const nameOf = (signature: string) => signature.replace(/\(.*/, '');
      const entries = all.filter((entry) => nameOf(entry.name) === nameOf(name));
      if (entries.length > 0) return { projects, entries };
      throw new StorageError(`There is no ${name}. Without a name, describe lists all.`);
    },
  ),

  weekly_report: projectTool(
    { week: text.optional().describe('a week such as 2026-W46; by default the last that has ended') },
    { report: text },
    async ({ workspace, reader, project, now }, { week }) => {
      const report = await findReport('weekly', workspace.workspaceDir);
      const period = choosePeriod('week', week, now, workspace.settings.reports);
      return { report: (await prepareReport(workspace, reader, project, { report, period, now })).text() };
    },
  ),

  top_pages: projectTool(
    {
      from: text.optional().describe('first day, such as 2026-08-24; by default 13 weeks are covered'),
      to: text.optional().describe('last day; by default the last that is loaded'),
      against: z
        .enum(CHOICES.against)
        .optional()
        .describe('relative to what; by default as many days or months before'),
      per: z.enum(CHOICES.per).optional(),
      section: z.string().max(2_000).optional().describe('first part of the path, such as /docs'),
      search: z.string().max(2_000).optional().describe('part of the path'),
      readers: z.enum(CHOICES.readers).optional().describe('only pages that this audience reads'),
      only: z
        .enum(['moved', 'new', 'gone', 'files'])
        .optional()
        .describe('moved needs seven days; files: those and system addresses, which other lists leave out'),
      sort: z.enum(CHOICES.sort).optional(),
      order: z.enum(CHOICES.order).optional(),
      limit: z.int().min(1).max(200).default(20),
    },
    {
      from: text,
      to: text,
      compared_from: textOrNull.describe('first of the days that changes are relative to'),
      compared_to: textOrNull,
      total: changeOf.nullable().describe('of the whole site, or of the section'),
      found: z.int(),
      pages: z.array(changeOf),
    },
    async (question, { limit }) => {
      const { rows, query } = question;
      const [total = null] = await rows('totals', scopeOf(query.section));
      const pages = await rows('pages', { ...(await marksOf(question)), limit, offset: 0 });
      const found = Number(pages[0]?.['found'] ?? 0);
      const note = found > pages.length ? cutWords({ rows: pages, found }) : undefined;
      return { total, found, pages, note };
    },
  ),

  page: projectTool(
    {
      path: z.string().max(4_000).describe('a path such as /quickstart, or the full URL'),
      weeks: z.int().min(1).max(260).default(13),
    },
    {
      path: text,
      weeks: z.array(rowSchema).describe('the latest first'),
      events: list({ day: text, text }).describe('jobs, notes and breaks on these days'),
      jobs: list({
        job: z.int(),
        state: text,
        reason: text,
        planned_at: text,
        ended_at: textOrNull,
        pr_link: textOrNull,
        merged_on: textOrNull,
        closed_on: textOrNull,
        effect: textOrNull,
      }),
    },
    async (question, { weeks }) => {
      const { rows, reader, project, range } = question;
      const path = await knownPage(question);
      const jobs = await readJobsWithEffects(reader.state, reader, project.id);
      return {
        path,
        weeks: await rows('page-course', { path, weeks }),
        events: await rows('marks', { path, from: addDays(range.last, 1 - 7 * weeks) }),
        jobs: jobs.filter((job) => pageOf(job.path) === path).map((job) => ({ ...job, job: job.id })),
      };
    },
  ),

  proposals: projectTool(
    {},
    {
      proposed: list({
        path: text,
        why: text,
        caution: textOrNull,
        digest: text,
        prompt: text.describe('what the agent would get; it asks nothing of you'),
      }),
      next: list({ path: text, why: text }).describe('wait only for room, in this order'),
      leftOut: list({ path: text, why: text }),
    },
    ({ reader, project, now }, _, { proposals }) => proposals.of(reader, project, now),
  ),
};

/** What is missing from an answer: `200 of 4,312 rows; …`. */
function cutWords({ rows, found }: Pick<Rows, 'rows' | 'found'>): string {
  const shown = thousands(rows.length);
  const some = rows.length === 0 ? 'No row fits' : `The first ${shown} rows of very many`;
  const words = found === null ? some : `${shown} of ${thousands(found)} rows`;
  return `${words}; aggregate, filter or ask for fewer columns to see the rest.`;
}
