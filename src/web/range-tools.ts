import { z } from 'zod';
import { unknownPage } from '../agents/plan.js';
import { ConfigurationError, StorageError } from '../errors.js';
import { CHOICES, onlyThese, questionOf, scopeOf } from './request.js';
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

const days = {
  from: z.string().optional().describe('first day, such as 2026-08-24; by default 13 weeks are covered'),
  to: z.string().optional().describe('last day; by default the last that is loaded'),
  against: z
    .enum(CHOICES.against)
    .optional()
    .describe('what changes are relative to; by default as many days before'),
};
const limit = z.int().min(1).max(200).default(20);
const sectionPart = z.string().max(2_000).describe('first part of the path, such as /docs');

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
export const asking = (
  call: Call,
  input: {
    readonly [name: string]: string | readonly string[] | undefined;
    readonly project?: string | undefined;
  },
  work: (question: Answering) => Promise<object>,
) =>
  withProject(call, input.project, async (reader, { id, name }) => {
    const parameters = Object.entries({ ...input, project: id }).flatMap(([key, value = []]) =>
      [value].flat().map((one): [string, string] => [key, one]),
    );
    const question = await questionOf(new URLSearchParams(parameters), reader, call.sources);
    const { range } = question;
    if (range === undefined) throw new StorageError(`Nothing is loaded for ${name} yet.`);
    const answer = await work({ ...question, range });
    return { from: range.first, to: range.last, days_earlier: range.shift, ...answer };
  });

/** The path that is asked about. Throws a `StorageError` if the history has no such page. */
export async function knownPage({ reader, query: { path }, project }: Answering): Promise<string> {
  const unknown = await unknownPage(reader, project.id, path);
  if (unknown !== undefined) throw new StorageError(`${path}: ${unknown}`);
  return path;
}

/** The first pages that the parameters choose, and how many there are. */
const listOf =
  (most: number) =>
  async ({ rows }: Answering) => {
    const pages = await rows('pages', { limit: most, offset: 0 });
    return { found: pages[0]?.['found'] ?? 0, pages };
  };

/** The tools that answer about a range of days, as the pages of the web app do. */
export const RANGE_TOOLS = {
  top_pages: tool(
    {
      ...days,
      per: z.enum(CHOICES.per).optional(),
      section: sectionPart.optional(),
      search: z.string().max(2_000).optional().describe('part of the path'),
      readers: z.enum(CHOICES.readers).optional().describe('only pages that this audience reads'),
      only: z.enum(['moved', 'new', 'gone']).optional(),
      sort: z.enum(CHOICES.sort).optional(),
      order: z.enum(CHOICES.order).optional(),
      limit,
      project,
    },
    { ...coveredDays, found: z.int(), pages: z.array(changeOf) },
    ({ limit: most, ...input }, call) => asking(call, input, listOf(most)),
  ),

  search_paths: tool(
    { search: z.string().min(1).max(2_000).describe('part of the path'), limit, project },
    { found: z.int(), pages: list({ path: text, human: z.number(), ai: z.number() }) },
    ({ limit: most, ...input }, call) =>
      asking(call, { ...input, range: 'all', against: 'none' }, listOf(most)),
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
        const found = {
          pages: await rows('pages', onlyThese('page', query.paths)),
          sections: await rows('pages', onlyThese('section', sections)),
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
      grain: z.enum(CHOICES.grain).optional(),
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
      asking(call, input, async (question) => {
        const { rows, query } = question;
        const path = input.path === undefined ? null : await knownPage(question);
        const [total = null] = await (path === null
          ? rows('totals', scopeOf(query.section))
          : rows('pages', onlyThese('page', [path])));
        return { total, series: await rows('series', { path }), events: await rows('marks', { path }) };
      }),
  ),
} satisfies Readonly<Record<string, Tool>>;
