import { z } from 'zod';
import { effectWords, readEffects } from '../agents/effect.js';
import { readJobs } from '../agents/ledger.js';
import { unknownPage } from '../agents/plan.js';
import type { ProjectSettings } from '../config/schema.js';
import { StorageError } from '../errors.js';
import { findReport } from '../reports/definition.js';
import { prepareReport } from '../reports/render.js';
import { readDictionary } from '../sql/dictionary.js';
import type { PublishedReader } from './history.js';
import type { Asker } from './questions.js';
import { pathIn, rowSchema, rowsOf, type Sources } from './request.js';

export const MAX_ROWS = 1_000;
export const MAX_CHARACTERS = 100_000;

/** What a tool answers from. */
export interface Asked extends Asker {
  readonly sources: Sources;
  /** Works with a history that this version published, which its own queries require. */
  readonly reading: <Result>(work: (reader: PublishedReader) => Promise<Result>) => Promise<Result>;
  /** The project with this id, or the only one. Throws a `ConfigurationError`. */
  readonly projectOf: (id: string | undefined) => ProjectSettings;
  /** A week by name, or the last one that has ended. Throws a `ConfigurationError`. */
  readonly weekOf: (name: string | undefined) => WeekPeriod;
}
type WeekPeriod = Parameters<typeof prepareReport>[3]['period'];

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodObject;
  readonly output: z.ZodObject;
  readonly answer: (input: unknown, asked: Asked) => Promise<Record<string, unknown>>;
}

const tool = <Input extends z.ZodObject, Output extends z.ZodObject>(
  {
    input,
    ...rest
  }: Omit<Tool, 'answer' | 'input' | 'output'> & { readonly input: Input; readonly output: Output },
  answer: (input: z.output<Input>, asked: Asked) => Promise<z.input<Output>>,
): Tool => ({ ...rest, input, answer: (given, asked) => answer(input.parse(given), asked) });

const project = z.string().optional().describe('project id; required if there are several');
const week = z.string().optional().describe('a week such as 2026-W46; by default the last that has ended');
const text = z.string().nullable();
const row = rowSchema;

export const TOOLS: readonly Tool[] = [
  tool(
    {
      name: 'projects',
      title: 'Projects and their data',
      description: 'The projects, the days that are loaded of each, and how fresh the data is.',
      input: z.object({}),
      output: z.object({
        projects: z.array(
          z.object({
            id: z.string(),
            name: z.string(),
            site: text,
            coverage: row.nullable().describe('null if nothing is loaded'),
          }),
        ),
      }),
    },
    async (_, { sources, reading }) => {
      const rows = await reading((reader) => rowsOf(reader, 'coverage', {}));
      return {
        projects: sources.workspace.projects.map(({ id, name, siteUrl = null }) => {
          return { id, name, site: siteUrl, coverage: rows.find((one) => one['project'] === id) ?? null };
        }),
      };
    },
  ),
  tool(
    {
      name: 'query',
      title: 'Run SQL',
      description: `Runs one SQL SELECT (DuckDB) on the published history. Returns at most ${MAX_ROWS} rows: aggregate rather than list.`,
      input: z.object({ sql: z.string().max(20_000), maxRows: z.int().min(1).max(MAX_ROWS).default(100) }),
      output: z.object({ rows: z.array(row), note: z.string().optional() }),
    },
    async ({ sql, maxRows }, asked) => {
      const limits = { maxRows, maxCharacters: MAX_CHARACTERS };
      const { isCut, note, ...answer } = await asked.sources.questions.answer(sql, asked, limits);
      const rows = z.array(row).parse(answer.rows);
      const cut = `Cut after ${rows.length} rows: the limits are ${maxRows} rows and ${MAX_CHARACTERS} characters. Aggregate or filter.`;
      const said = isCut ? cut : note;
      return { rows, ...(said !== undefined && { note: said }) };
    },
  ),
  tool(
    {
      name: 'describe',
      title: 'Explain the data',
      description:
        'Lists the tables, views and macros of the history with what they mean, or explains one with its columns.',
      input: z.object({ name: z.string().optional().describe('such as site_weeks') }),
      output: z.object({
        entries: z.array(
          z.object({
            name: z.string(),
            kind: z.string(),
            comment: z.string(),
            columns: z.array(row).optional(),
          }),
        ),
      }),
    },
    async ({ name }, { reading }) => {
      const all = await reading(readDictionary);
      if (name === undefined)
        return { entries: all.map(({ name, kind, comment }) => ({ name, kind, comment })) };
      const entries = all.filter((entry) => entry.name.replace(/\(.*/, '') === name.replace(/\(.*/, ''));
      if (entries.length > 0) return { entries };
      throw new StorageError(`There is no ${name}. Without a name, describe lists all.`);
    },
  ),
  tool(
    {
      name: 'weekly_report',
      title: 'Weekly report',
      description:
        'The weekly report as text: people and AI compared with the week before and the usual range, what moved, most read, new pages, agents.',
      input: z.object({ week, project }),
      output: z.object({ report: z.string() }),
    },
    (input, { sources: { workspace }, reading, projectOf, weekOf }) =>
      reading(async (reader) => {
        const report = await findReport('weekly', workspace.workspaceDir);
        const about = { report, period: weekOf(input.week) };
        return { report: (await prepareReport(workspace, reader, projectOf(input.project), about)).text() };
      }),
  ),
  tool(
    {
      name: 'page',
      title: 'One page',
      description:
        'One page: its views by week, its agent jobs, their pull requests and the measured effect.',
      input: z.object({
        path: z.string().max(4_000).describe('a path such as /quickstart, or the full URL'),
        weeks: z.int().min(1).max(260).default(13),
        project,
      }),
      output: z.object({
        path: z.string(),
        weeks: z.array(row),
        jobs: z.array(z.record(z.string(), z.unknown())),
      }),
    },
    ({ weeks, ...input }, { reading, projectOf }) =>
      reading(async (reader) => {
        const { id, siteUrl } = projectOf(input.project);
        const path = pathIn(input.path, siteUrl);
        const unknown = await unknownPage(reader, id, path);
        if (unknown !== undefined) throw new StorageError(`${path}: ${unknown}`);
        const effects = await readEffects(reader, id);
        const jobs = (await readJobs(reader, id)).filter((job) => job.path === path);
        return {
          path,
          weeks: await rowsOf(reader, 'page-course', { project: id, path, weeks }),
          jobs: jobs.map(
            ({ id: job, state, reason, planned_at, ended_at, pr_link, merged_on, closed_on }) => {
              const effect = effects.find((one) => one.job === job);
              const facts = { job, state, reason, planned_at, ended_at, pr_link, merged_on, closed_on };
              return { ...facts, effect: effect === undefined ? null : effectWords(effect) };
            },
          ),
        };
      }),
  ),
  tool(
    {
      name: 'movers',
      title: 'What moved',
      description:
        'Pages that people or AI read clearly more or less in a week than expected, with the expected range.',
      input: z.object({ week, project }),
      output: z.object({ week: z.string().describe('its first day'), moved: z.array(row) }),
    },
    (input, { reading, projectOf, weekOf }) =>
      reading(async (reader) => {
        const { first } = weekOf(input.week);
        const { id } = projectOf(input.project);
        return { week: first, moved: await rowsOf(reader, 'movers', { project: id, week: first }) };
      }),
  ),
  tool(
    {
      name: 'proposals',
      title: 'Pages to improve',
      description:
        'Pages recommended for an agent, why, and the exact prompt of each. A person approves them: readership improve --apply /path#digest',
      input: z.object({ project }),
      output: z.object({
        proposed: z.array(
          z.object({
            path: z.string(),
            why: z.string(),
            caution: text,
            digest: z.string(),
            prompt: z.string(),
          }),
        ),
        leftOut: z.array(z.object({ path: z.string(), why: z.string() })),
      }),
    },
    (input, { sources, reading, projectOf }) =>
      reading(async (reader) => {
        const { proposals, runtime } = sources;
        const { proposed, leftOut } = await proposals.of(reader, projectOf(input.project), runtime.now());
        return {
          proposed: proposed.map(({ path, why, caution, digest, prompt }) => ({
            path,
            why,
            caution,
            digest,
            prompt,
          })),
          leftOut: leftOut.map(({ path, why }) => ({ path, why })),
        };
      }),
  ),
];

/** Usual jobs for an assistant: which tools answer them, and what the answer must say. */
export const PROMPTS = [
  {
    name: 'weekly_summary',
    title: 'Summarize the week',
    text: 'Call weekly_report. Summarize the last week for a docs team in at most eight sentences: total and change, what stood out against the usual range, what to do. Quote only numbers of the report, and name missing days.',
  },
  {
    name: 'what_moved',
    title: 'What moved, and why',
    text: 'Call movers. For each page that moved, call page, and compare its weeks and jobs. Say what coincides with the change, such as a merged pull request; never call it the cause.',
  },
  {
    name: 'what_ai_reads',
    title: 'What AI reads',
    text: 'Call projects for the loaded days, then query top_pages(first_day, last_day) for the last 28 of them. List what AI reads most, what AI reads and people do not, and how the AI share of the site changes by month (human_vs_ai).',
  },
  {
    name: 'pages_to_improve',
    title: 'Which pages to improve',
    text: 'Call proposals. Explain the reason for each proposed page in one sentence, and what its prompt asks for. End with the command that approves each; do not claim that anything was approved.',
  },
  {
    name: 'data_complete',
    title: 'Is the data complete?',
    text: 'Call projects, then query data_quality and day_loads. Say which days are missing, provisional or inconsistent, since when, and whether a conclusion about last week is safe.',
  },
] as const;
