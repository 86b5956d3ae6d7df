import { z } from 'zod';
import { effectWords, readEffects } from '../agents/effect.js';
import { readJobs } from '../agents/ledger.js';
import { unknownPage } from '../agents/plan.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, StorageError } from '../errors.js';
import { findReport } from '../reports/definition.js';
import { lastEnded, parsePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { readDictionary } from '../sql/dictionary.js';
import type { PublishedReader } from './history.js';
import type { Asker } from './questions.js';
import { pathIn, questionOf, rowSchema, rowsOf, type Sources } from './request.js';

const MAX_ROWS = 1_000;
const MAX_CHARACTERS = 100_000;

/** Who calls a tool, and what it answers from. */
interface Call extends Asker {
  readonly sources: Sources;
}

export interface Tool {
  readonly input: z.ZodObject;
  /** What an answer has beyond this is left out. */
  readonly output: z.ZodObject;
  readonly answer: (input: unknown, call: Call) => Promise<object>;
}

const tool = <Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (input: z.output<z.ZodObject<Input>>, call: Call) => Promise<object>,
): Tool => {
  const input = z.object(inputs);
  return { input, output: z.object(outputs), answer: (given, call) => answer(input.parse(given), call) };
};

/** Works with a history that this version published, which its own queries require. */
const reading = <Result>(
  { sources, ...asker }: Call,
  project: string | undefined,
  work: (reader: PublishedReader) => Promise<Result>,
) => sources.histories.of(project).with(asker, work);

/** The project with this id, or the only one. Throws a `ConfigurationError`. */
function projectOf({ sources }: Call, id: string | undefined): ProjectSettings {
  const { projects } = sources.workspace;
  const found =
    id === undefined && projects.length === 1 ? projects[0] : projects.find((one) => one.id === id);
  if (found !== undefined) return found;
  throw new ConfigurationError(`Name the project: ${projects.map((one) => one.id).join(', ')}.`);
}

/** A week by name, or the last one that has ended. Throws a `ConfigurationError`. */
function weekOf({ sources: { workspace, runtime } }: Call, name: string | undefined) {
  const calendar = workspace.settings.reports;
  return name === undefined
    ? lastEnded('week', runtime.now(), calendar)
    : parsePeriod('week', name, calendar);
}

const project = z.string().optional().describe('project id; required if there are several');
const week = z.string().optional().describe('a week such as 2026-W46; by default the last that has ended');
const text = z.string();
const textOrNull = text.nullable();
const list = <Fields extends z.ZodRawShape>(fields: Fields) => z.array(z.object(fields));

const days = {
  from: z.string().optional().describe('first day, such as 2026-08-24; by default 13 weeks are covered'),
  to: z.string().optional().describe('last day; by default the last that is loaded'),
  against: z
    .enum(['before', 'year', 'none'])
    .optional()
    .describe('what changes are relative to; by default as many days before'),
};
const limit = z.int().min(1).max(200).default(20);
const sectionPart = z.string().max(2_000).describe('first part of the path, such as /docs');
const pathOrUrl = z.string().max(2_000).describe('a path such as /quickstart, or the full URL');

const numberOrNull = z.number().nullable();
const flagOrNull = z.boolean().nullable();
const coveredDays = {
  from: text,
  to: text,
  days_earlier: z.int().describe('how much earlier the days lie that changes are relative to; 0 for none'),
};
/** As the macro `changes` defines them. */
const changeOf = z.object({
  path: textOrNull.optional(),
  human: numberOrNull,
  ai: numberOrNull,
  ai_share: numberOrNull,
  days_loaded: z.int().nullable(),
  days_before: z.int().nullable(),
  human_before: numberOrNull,
  ai_before: numberOrNull,
  human_change: numberOrNull.describe('per loaded day: 0.1 is 10% more'),
  ai_change: numberOrNull,
  human_low: numberOrNull.optional().describe('expected range'),
  human_high: numberOrNull.optional(),
  ai_low: numberOrNull.optional(),
  ai_high: numberOrNull.optional(),
  human_is_unusual: flagOrNull.optional().describe('outside of the expected range'),
  ai_is_unusual: flagOrNull.optional(),
  is_new: flagOrNull.optional(),
});

type Question = Awaited<ReturnType<typeof questionOf>>;
type Answering = Question & { readonly range: NonNullable<Question['range']> };

/** Asks as a page of the web app would with these parameters, and says which days the answer is about. */
const asking = (
  call: Call,
  input: Readonly<Record<string, string | readonly string[] | undefined>> & {
    readonly project?: string | undefined;
  },
  work: (question: Answering) => Promise<object>,
) =>
  reading(call, input.project, async (reader) => {
    const { id, name } = projectOf(call, input.project);
    const parameters = new URLSearchParams();
    for (const [key, value] of Object.entries<string | readonly string[] | undefined>({
      ...input,
      project: id,
    }))
      for (const one of [value ?? []].flat()) parameters.append(key, one);
    const question = await questionOf(parameters, reader, call.sources);
    const { range } = question;
    if (range === undefined) throw new StorageError(`Nothing is loaded for ${name} yet.`);
    const answer = await work({ ...question, range });
    return { from: range.first, to: range.last, days_earlier: range.shift, ...answer };
  });

/** The tools by name. */
export const TOOLS: Readonly<Record<string, Tool>> = {
  projects: tool(
    {},
    {
      projects: list({
        id: text,
        name: text,
        site: textOrNull,
        coverage: rowSchema.nullable().describe('null if nothing is loaded'),
      }),
    },
    async (_, call) => {
      const { all } = call.sources.histories;
      const each = all.map(async (history) => {
        const covered = history.with(call, (reader) => rowsOf(reader, 'coverage', {}));
        // One shard that cannot be read does not hide the others.
        const rows = await (all.length === 1 ? covered : covered.catch(() => []));
        return history.part.projects.map(({ id, name, siteUrl: site = null }) => ({
          id,
          name,
          site,
          coverage: rows.find((one) => one['project'] === id) ?? null,
        }));
      });
      return { projects: (await Promise.all(each)).flat() };
    },
  ),

  query: tool(
    { sql: z.string().max(20_000), maxRows: z.int().min(1).max(MAX_ROWS).default(100) },
    { rows: z.array(rowSchema), note: z.string().optional() },
    async ({ sql, maxRows }, call) => {
      const limits = { maxRows, maxCharacters: MAX_CHARACTERS };
      const { isCut, note, ...answer } = await call.sources.questions.answer(sql, call, limits);
      const rows = z.array(rowSchema).parse(answer.rows);
      const cut = `Cut after ${rows.length} rows: the limits are ${maxRows} rows and ${MAX_CHARACTERS} characters. Aggregate or filter.`;
      return { rows, note: isCut ? cut : note };
    },
  ),

  describe: tool(
    { name: z.string().optional().describe('such as site_weeks') },
    {
      entries: list({ name: text, kind: text, comment: text, columns: z.array(rowSchema).optional() }),
    },
    async ({ name }, call) => {
      const all = await reading(call, undefined, readDictionary);
      if (name === undefined) return { entries: all.map((entry) => ({ ...entry, columns: undefined })) };
      const nameOf = (signature: string) => signature.replace(/\(.*/, '');
      const entries = all.filter((entry) => nameOf(entry.name) === nameOf(name));
      if (entries.length > 0) return { entries };
      throw new StorageError(`There is no ${name}. Without a name, describe lists all.`);
    },
  ),

  weekly_report: tool({ week, project }, { report: text }, (input, call) =>
    reading(call, input.project, async (reader) => {
      const { workspace } = call.sources;
      const report = await findReport('weekly', workspace.workspaceDir);
      const about = { report, period: weekOf(call, input.week) };
      const prepared = await prepareReport(workspace, reader, projectOf(call, input.project), about);
      return { report: prepared.text() };
    }),
  ),

  page: tool(
    {
      path: pathOrUrl,
      weeks: z.int().min(1).max(260).default(13),
      project,
    },
    {
      path: text,
      weeks: z.array(rowSchema),
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
    ({ weeks, ...input }, call) =>
      reading(call, input.project, async (reader) => {
        const { id, siteUrl } = projectOf(call, input.project);
        const path = pathIn(input.path, siteUrl);
        const unknown = await unknownPage(reader, id, path);
        if (unknown !== undefined) throw new StorageError(`${path}: ${unknown}`);
        const effects = await readEffects(reader, id);
        const jobs = (await readJobs(reader, id)).filter((job) => job.path === path);
        return {
          path,
          weeks: await rowsOf(reader, 'page-course', { project: id, path, weeks }),
          jobs: jobs.map((job) => {
            const effect = effects.find((one) => one.job === job.id);
            return { ...job, job: job.id, effect: effect === undefined ? null : effectWords(effect) };
          }),
        };
      }),
  ),

  top_pages: tool(
    {
      ...days,
      per: z.enum(['page', 'section']).optional(),
      section: sectionPart.optional(),
      search: z.string().max(2_000).optional().describe('part of the path'),
      readers: z.enum(['human', 'ai', 'both']).optional().describe('only pages that this audience reads'),
      only: z.enum(['moved', 'new', 'gone']).optional(),
      sort: z.enum(['total', 'human', 'ai', 'share', 'human_change', 'ai_change', 'path']).optional(),
      order: z.enum(['desc', 'asc']).optional(),
      limit,
      project,
    },
    { ...coveredDays, found: z.int(), pages: z.array(changeOf) },
    ({ limit: most, ...input }, call) =>
      asking(call, input, async ({ rows }) => {
        const pages = await rows('pages', { limit: most, offset: 0 });
        return { found: pages[0]?.['found'] ?? 0, pages };
      }),
  ),

  search_paths: tool(
    { search: z.string().min(1).max(2_000).describe('part of the path'), limit, project },
    { found: z.int(), pages: list({ path: text, human: z.number(), ai: z.number() }) },
    ({ limit: most, ...input }, call) =>
      asking(call, { ...input, range: 'all', against: 'none' }, async ({ rows }) => {
        const pages = await rows('pages', { limit: most, offset: 0 });
        return { found: pages[0]?.['found'] ?? 0, pages };
      }),
  ),

  compare: tool(
    {
      ...days,
      paths: z.array(pathOrUrl).max(5).default([]),
      sections: z.array(sectionPart).max(5).default([]),
      project,
    },
    { ...coveredDays, pages: z.array(changeOf), sections: z.array(changeOf), without_views: z.array(text) },
    ({ paths, sections, ...input }, call) => {
      if (paths.length + sections.length < 2)
        throw new ConfigurationError('Name two paths or sections or more.');
      return asking(call, { ...input, path: paths }, async ({ rows, query }) => {
        const chosen = (per: string, names: readonly string[]) =>
          rows('pages', { per, only: 'chosen', chosen: JSON.stringify(names), limit: 5, offset: 0 });
        const found = {
          pages: await chosen('page', query.paths),
          sections: await chosen('section', sections),
        };
        const seen = [...found.pages, ...found.sections].map((row) => row['path']);
        return {
          ...found,
          without_views: [...query.paths, ...sections].filter((one) => !seen.includes(one)),
        };
      });
    },
  ),

  series: tool(
    {
      ...days,
      path: pathOrUrl.optional(),
      section: sectionPart.optional(),
      grain: z.enum(['day', 'week', 'month']).optional(),
      project,
    },
    {
      ...coveredDays,
      total: changeOf.nullable(),
      series: z.array(
        z.object({
          first: text,
          last: text,
          human_views: numberOrNull.describe('null where no day is loaded'),
          ai_views: numberOrNull,
          days: z.int(),
          loaded: z.int(),
          provisional: z.int(),
        }),
      ),
      events: list({ day: text, text }).describe('jobs, changes, notes and breaks on these days'),
    },
    (input, call) =>
      asking(call, input, async ({ rows, query, reader, project: { id } }) => {
        const path = input.path === undefined ? null : query.path;
        const unknown = path === null ? undefined : await unknownPage(reader, id, path);
        if (unknown !== undefined) throw new StorageError(`${path}: ${unknown}`);
        const chosen = { only: 'chosen', chosen: JSON.stringify([path]), limit: 1, offset: 0 };
        const [total = null] = await (path === null ? rows('totals') : rows('pages', chosen));
        return { total, series: await rows('series', { path }), events: await rows('marks', { path }) };
      }),
  ),

  experiment: tool(
    { project },
    {
      effect: z
        .array(rowSchema)
        .describe('by audience; basis assigned counts every pair, merged only merged ones'),
      pairs: z.array(rowSchema),
    },
    (input, call) =>
      reading(call, input.project, async (reader) => {
        const about = { project: projectOf(call, input.project).id };
        return {
          effect: await rowsOf(reader, 'experiment', about),
          pairs: await rowsOf(reader, 'experiment-pairs', about),
        };
      }),
  ),

  questions: tool({}, { questions: list({ name: text, sql: text }) }, async (_, { sources: { saved } }) => {
    const names = await saved.names();
    return {
      questions: await Promise.all(
        names.map(async (name) => ({ name, sql: await saved.sqlOf({ name, sql: '' }) })),
      ),
    };
  }),

  movers: tool(
    { week, project },
    { week: z.string().describe('its first day'), moved: z.array(rowSchema) },
    (input, call) =>
      reading(call, input.project, async (reader) => {
        const { first } = weekOf(call, input.week);
        const { id } = projectOf(call, input.project);
        return {
          week: first,
          moved: await rowsOf(reader, 'movers', { project: id, week: first, section: '' }),
        };
      }),
  ),

  proposals: tool(
    { project },
    {
      proposed: list({ path: text, why: text, caution: textOrNull, digest: text, prompt: text }),
      leftOut: list({ path: text, why: text }),
    },
    (input, call) =>
      reading(call, input.project, (reader) => {
        const { proposals, runtime } = call.sources;
        return proposals.of(reader, projectOf(call, input.project), runtime.now());
      }),
  ),
};
