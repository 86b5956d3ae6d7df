import { z } from 'zod';
import { effectWords, readEffects } from '../agents/effect.js';
import { readJobs } from '../agents/ledger.js';
import { unknownPage } from '../agents/plan.js';
import { StorageError } from '../errors.js';
import { findReport } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { readDictionary } from '../sql/dictionary.js';
import { RANGE_TOOLS } from './range-tools.js';
import { pathIn } from './request.js';
import { rowSchema, rowsOf } from './sources.js';
import {
  type Call,
  list,
  pathOrUrl,
  project,
  projectOf,
  reading,
  text,
  textOrNull,
  tool,
  type Tool,
} from './tool.js';

const MAX_ROWS = 1_000;
const MAX_CHARACTERS = 100_000;

/** Throws a `ConfigurationError`. */
const weekOf = ({ sources: { workspace, runtime } }: Call, name: string | undefined) =>
  choosePeriod('week', name, runtime.now(), workspace.settings.reports);

const week = z.string().optional().describe('a week such as 2026-W46; by default the last that has ended');

/** The tools by name. Each needs its words in `assistant.yaml`, and a row in docs/mcp.md. */
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

  ...RANGE_TOOLS,

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
