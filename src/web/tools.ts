import { z } from 'zod';
import { readJobsWithEffects } from '../agents/job-effects.js';
import { unknownPage } from '../agents/plan.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, StorageError } from '../errors.js';
import { readCoverage } from '../reports/coverage.js';
import { findReport } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { readDictionary } from '../sql/dictionary.js';
import { rowSchema } from '../warehouse/query.js';
import type { Asker } from './questions.js';
import { questionOf, type Range, rowsOf, type Sources } from './request.js';

/** Who calls a tool, and what it answers from. */
export type Call = Asker & { readonly sources: Sources };

export interface Tool {
  readonly input: z.ZodObject;
  /** What an answer has beyond this is left out. */
  readonly output: z.ZodObject;
  readonly answer: (input: unknown, call: Call) => Promise<object>;
}

export const tool = <Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (input: z.output<z.ZodObject<Input>>, call: Call) => Promise<object>,
): Tool => {
  const input = z.object(inputs);
  return { input, output: z.object(outputs), answer: (given, call) => answer(input.parse(given), call) };
};

/** What is asked about the days of a project. */
export type DaysQuestion = Awaited<ReturnType<typeof questionOf>> & { readonly range: Range };

const project = z.string().optional().describe('project id; required if there are several');

/**
 * A tool about the days of a project. It is asked as a page of the web app would be whose address has the parameters
 * that `inAddress` makes of its input, and says which days its answer is about.
 */
export function projectTool<Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (question: DaysQuestion, input: z.output<z.ZodObject<Input>>, sources: Sources) => Promise<object>,
  inAddress: (input: z.output<z.ZodObject<Input>>) => object = (input) => input,
): Tool {
  const own = z.object(inputs);
  const answered: Tool['answer'] = async (given, { sources, ...asker }) => {
    const input = own.parse(given);
    const { id, name } = projectNamed(z.object({ project }).parse(given).project, sources.workspace.projects);
    const parameters = Object.entries({ ...inAddress(input), project: id }).flatMap(([key, value = []]) =>
      [value].flat().map((one): [string, string] => [key, one]),
    );
    return sources.history.with(asker, async (reader) => {
      const question = await questionOf(new URLSearchParams(parameters), reader, sources);
      const { range } = question;
      if (range === undefined) throw new StorageError(`Nothing is loaded for ${name} yet.`);
      const { first: from, last: to, shift: days_earlier } = range;
      return { from, to, days_earlier, ...(await answer({ ...question, range }, input, sources)) };
    });
  };
  return { input: own.extend({ project }), output: z.object(outputs), answer: answered };
}

/** The project with this id, or the only one. Throws a `ConfigurationError`. */
function projectNamed(id: string | undefined, projects: readonly ProjectSettings[]): ProjectSettings {
  const found =
    id === undefined && projects.length === 1 ? projects[0] : projects.find((one) => one.id === id);
  if (found !== undefined) return found;
  throw new ConfigurationError(`Name the project: ${projects.map((one) => one.id).join(', ')}.`);
}

/** The path that is asked about. Throws a `StorageError` if the history has no such page. */
export async function knownPage({ reader, query: { path }, project }: DaysQuestion): Promise<string> {
  const unknown = await unknownPage(reader, project.id, path);
  if (unknown !== undefined) throw new StorageError(`${path}: ${unknown}`);
  return path;
}

export const text = z.string();
const textOrNull = text.nullable();
export const list = <Fields extends z.ZodRawShape>(fields: Fields) => z.array(z.object(fields));
export const pathOrUrl = z.string().max(4_000).describe('a path such as /quickstart, or the full URL');

const MAX_ROWS = 1_000;
const MAX_CHARACTERS = 100_000;

/** Throws a `ConfigurationError`. */
const weekOf = ({ workspace, now }: DaysQuestion, name: string | undefined) =>
  choosePeriod('week', name, now, workspace.settings.reports);

const week = z.string().optional().describe('a week such as 2026-W46; by default the last that has ended');

/** Tools by name, as those of `range-tools.ts`. Each needs its words in `assistant.yaml`, and a row in docs/mcp.md. */
export const OTHER_TOOLS: Readonly<Record<string, Tool>> = {
  projects: tool(
    {},
    { projects: list({ id: text, name: text, site: textOrNull, coverage: rowSchema.nullable() }) },
    async (_, call) => {
      const { history, workspace } = call.sources;
      const rows = await history.with(call, (reader) => rowsOf(reader, 'coverage', {}));
      const projects = workspace.projects.map(({ id, name, siteUrl: site = null }) => ({
        id,
        name,
        site,
        coverage: rows.find((one) => one['project'] === id) ?? null,
      }));
      return { projects };
    },
  ),

  query: tool(
    { sql: z.string().max(20_000), maxRows: z.int().min(1).max(MAX_ROWS).default(100) },
    { rows: z.array(rowSchema), note: z.string().optional() },
    async ({ sql, maxRows }, call) => {
      const limits = { maxRows, maxCharacters: MAX_CHARACTERS };
      const { rows, isCut, note } = await call.sources.questions.answer(sql, call, limits);
      const cut = `Cut after ${rows.length} rows: the limits are ${maxRows} rows and ${MAX_CHARACTERS} characters. Aggregate or filter.`;
      return { rows, note: isCut ? cut : note };
    },
  ),

  describe: tool(
    { name: z.string().optional().describe('such as site_weeks') },
    { entries: list({ name: text, kind: text, comment: text, columns: z.array(rowSchema).optional() }) },
    async ({ name }, call) => {
      const all = await call.sources.history.with(call, readDictionary);
      if (name === undefined) return { entries: all.map((entry) => ({ ...entry, columns: undefined })) };
      const nameOf = (signature: string) => signature.replace(/\(.*/, '');
      const entries = all.filter((entry) => nameOf(entry.name) === nameOf(name));
      if (entries.length > 0) return { entries };
      throw new StorageError(`There is no ${name}. Without a name, describe lists all.`);
    },
  ),

  weekly_report: projectTool({ week }, { report: text }, async (question, input) => {
    const { workspace, reader, project } = question;
    const report = await findReport('weekly', workspace.workspaceDir);
    const period = weekOf(question, input.week);
    return { report: (await prepareReport(workspace, reader, project, { report, period })).text() };
  }),

  page: projectTool(
    { path: pathOrUrl, weeks: z.int().min(1).max(260).default(13) },
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
    async (question, { weeks }) => {
      const path = await knownPage(question);
      const jobs = await readJobsWithEffects(question.reader, question.project.id);
      return {
        path,
        weeks: await question.rows('page-course', { path, weeks }),
        jobs: jobs.filter((job) => job.path === path).map((job) => ({ ...job, job: job.id })),
      };
    },
  ),

  experiment: projectTool(
    {},
    {
      effect: z.array(rowSchema).describe('by audience'),
      pairs: z.array(rowSchema),
    },
    async ({ rows }) => ({ effect: await rows('experiment'), pairs: await rows('experiment-pairs') }),
  ),

  questions: tool({}, { questions: list({ name: text, sql: textOrNull }) }, async (_, { sources }) => {
    const names = await sources.saved.names();
    // One that is too long does not hide the others.
    const sqlOf = (name: string) => sources.saved.sqlOf({ name, sql: '' }).catch(() => null);
    const each = names.map(async (name) => ({ name, sql: await sqlOf(name) }));
    return { questions: await Promise.all(each) };
  }),

  movers: projectTool(
    { week },
    { week: z.string().describe('its first day'), moved: z.array(rowSchema) },
    async (question, input) => {
      const period = weekOf(question, input.week);
      // Throws if none of its days is loaded.
      await readCoverage(question.reader, question.project, period);
      const { first: week } = period;
      return { week, moved: await question.rows('movers', { week, section: '' }) };
    },
  ),

  proposals: projectTool(
    {},
    {
      proposed: list({ path: text, why: text, caution: textOrNull, digest: text, prompt: text }),
      next: list({ path: text, why: text }).describe('wait only for room, in this order'),
      leftOut: list({ path: text, why: text }),
    },
    ({ reader, project, now }, _, { proposals }) => proposals.of(reader, project, now),
  ),
};
