import { z } from 'zod';
import { ConfigurationError } from '../errors.js';
import { CHOICES, onlyThese, scopeOf } from './request.js';
import { type DaysQuestion, knownPage, list, pathOrUrl, projectTool, text, type Tool } from './tools.js';

const days = {
  from: z.string().optional().describe('first day, such as 2026-08-24; by default 13 weeks are covered'),
  to: z.string().optional().describe('last day; by default the last that is loaded'),
  against: z.enum(CHOICES.against).optional().describe('relative to what; by default as many days before'),
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
  path: text.nullish(),
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

/** The first pages that are asked for, and how many there are. */
async function listOf({ rows }: DaysQuestion, { limit }: { readonly limit: number }) {
  const pages = await rows('pages', { limit, offset: 0 });
  return { found: pages[0]?.['found'] ?? 0, pages };
}

/** The tools that answer about a range of days, as the pages of the web app do. */
export const RANGE_TOOLS = {
  top_pages: projectTool(
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
    },
    { ...coveredDays, found: z.int(), pages: z.array(changeOf) },
    listOf,
  ),

  search_paths: projectTool(
    { search: z.string().min(1).max(2_000).describe('part of the path'), limit },
    { found: z.int(), pages: list({ path: text, human: z.number(), ai: z.number() }) },
    listOf,
    (input) => ({ ...input, range: 'all', against: 'none' }),
  ),

  compare: projectTool(
    {
      ...days,
      paths: z.array(pathOrUrl).max(5).default([]),
      sections: z.array(sectionPart).max(5).default([]),
    },
    { ...coveredDays, pages: z.array(changeOf), sections: z.array(changeOf), without_views: z.array(text) },
    async ({ rows, query: { paths, sections } }) => {
      if (paths.length + sections.length < 2)
        throw new ConfigurationError('Name two paths or sections or more.');
      const found = {
        pages: await rows('pages', onlyThese('page', paths)),
        sections: await rows('pages', onlyThese('section', sections)),
      };
      const seen = [...found.pages, ...found.sections].map((row) => row['path']);
      return { ...found, without_views: [...paths, ...sections].filter((one) => !seen.includes(one)) };
    },
    ({ paths, sections, ...input }) => ({ ...input, path: paths, section: sections }),
  ),

  series: projectTool(
    {
      ...days,
      path: pathOrUrl.optional(),
      section: sectionPart.optional(),
      grain: z.enum(CHOICES.grain).optional(),
    },
    {
      ...coveredDays,
      total: changeOf.nullable(),
      series: list({
        first: text,
        last: text,
        human_views: numberOrNull.describe('null where no day is loaded'),
        ai_views: numberOrNull,
        days: z.int(),
        loaded: z.int(),
        provisional: z.int(),
      }),
      events: list({ day: text, text }).describe('jobs, changes, notes and breaks on these days'),
    },
    async (question, input) => {
      const { rows, query } = question;
      const path = input.path === undefined ? null : await knownPage(question);
      const [total = null] = await (path === null
        ? rows('totals', scopeOf(query.section))
        : rows('pages', onlyThese('page', [path])));
      return { total, series: await rows('series', { path }), events: await rows('marks', { path }) };
    },
  ),
} satisfies Readonly<Record<string, Tool>>;
