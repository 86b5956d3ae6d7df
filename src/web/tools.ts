import { z } from 'zod';
import { readJobsWithEffects } from '../agents/effect.js';
import { StorageError } from '../errors.js';
import { findReport } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { readDictionary } from '../sql/dictionary.js';
import { rowSchema } from '../warehouse/query.js';
import { asking, knownPage, RANGE_TOOLS } from './range-tools.js';
import { rowsOf } from './sources.js';
import {
  withProject,
  type Call,
  list,
  pathOrUrl,
  project,
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
      const all = await call.sources.histories.of().with(call, readDictionary);
      if (name === undefined) return { entries: all.map((entry) => ({ ...entry, columns: undefined })) };
      const nameOf = (signature: string) => signature.replace(/\(.*/, '');
      const entries = all.filter((entry) => nameOf(entry.name) === nameOf(name));
      if (entries.length > 0) return { entries };
      throw new StorageError(`There is no ${name}. Without a name, describe lists all.`);
    },
  ),

  weekly_report: tool({ week, project }, { report: text }, (input, call) =>
    withProject(call, input.project, async (reader, about) => {
      const { workspace } = call.sources;
      const report = await findReport('weekly', workspace.workspaceDir);
      const period = weekOf(call, input.week);
      const prepared = await prepareReport(workspace, reader, about, { report, period });
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
      asking(call, input, async (question) => {
        const path = await knownPage(question);
        const { reader, project } = question;
        const jobs = await readJobsWithEffects(reader, project.id);
        return {
          path,
          weeks: await rowsOf(reader, 'page-course', { project: project.id, path, weeks }),
          jobs: jobs.filter((job) => job.path === path).map((job) => ({ ...job, job: job.id })),
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
      withProject(call, input.project, async (reader, { id }) => ({
        effect: await rowsOf(reader, 'experiment', { project: id }),
        pairs: await rowsOf(reader, 'experiment-pairs', { project: id }),
      })),
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
      withProject(call, input.project, async (reader, { id }) => {
        const { first } = weekOf(call, input.week);
        const moved = await rowsOf(reader, 'movers', { project: id, week: first, section: '' });
        return { week: first, moved };
      }),
  ),

  proposals: tool(
    { project },
    {
      proposed: list({ path: text, why: text, caution: textOrNull, digest: text, prompt: text }),
      leftOut: list({ path: text, why: text }),
    },
    (input, call) =>
      withProject(call, input.project, (reader, about) => {
        const { proposals, runtime } = call.sources;
        return proposals.of(reader, about, runtime.now());
      }),
  ),
};
