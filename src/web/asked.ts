import { z } from 'zod';
import { problemOf } from '../config/problems.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, type Day, type DayRange, daysBetween, parseDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { ISO_CALENDAR, periodOf } from '../reports/period.js';
import { dayColumn, type Parameters, type Reader, readSql } from '../warehouse/query.js';
import type { Visitor } from './access.js';
import type { Actions } from './actions.js';
import type { PublishedReader } from './history.js';
import type { Sources } from './sources.js';

const EXTENT = readSql(import.meta.url, 'queries/extent.sql');
const extentRow = z.object({ first: dayColumn.nullable(), last: dayColumn.nullable() });

/** Days of each range that a link chooses; the last loaded day ends them. */
const RANGES = { '4w': 28, '13w': 91, '26w': 182, '1y': 364, all: Infinity } as const;
const GRAINS = ['day', 'week', 'month'] as const;

const dayField = z
  .string()
  .transform((text, context): Day | undefined => {
    const day = text === '' ? undefined : parseDay(text);
    if (day === undefined && text !== '') context.addIssue('write a day such as 2026-11-09');
    return day;
  })
  .optional();
const words = z.string().max(2000, 'too long').default('');

/** What the address of a page may ask for. */
const askedSchema = z.object({
  project: words,
  range: z.enum(['4w', '13w', '26w', '1y', 'all', '']).default('13w'),
  from: dayField,
  to: dayField,
  grain: z.enum([...GRAINS, '']).default(''),
  against: z.enum(['before', 'year', 'none']).default('before'),
  search: words,
  section: words,
  readers: z.enum(['', 'human', 'ai', 'both']).default(''),
  sort: z.enum(['total', 'human', 'ai', 'human_change', 'ai_change', 'share', 'path']).default('total'),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
  path: words,
  sql: z.string().max(8_000, 'too long').default(''),
  name: words,
});
type Asked = z.infer<typeof askedSchema>;

/** The parameters of an address. Throws a `ConfigurationError` that says what is wrong with them. */
export function parseAsked(query: URLSearchParams): Asked {
  const parsed = askedSchema.safeParse(Object.fromEntries(query));
  if (parsed.success) return parsed.data;
  throw new ConfigurationError(problemOf(parsed.error));
}

/** The days that a page is about. */
export interface Range extends DayRange {
  readonly days: number;
  readonly grain: (typeof GRAINS)[number];
  /** How many days before lie those it is compared with; 0 for none. */
  readonly shift: number;
  /** The name of the range that was chosen; empty for days that were typed. */
  readonly chosen: string;
  /** The Monday of the last whole week of the range. */
  readonly week: Day;
  /** The first and last loaded day of all. */
  readonly extent: DayRange;
}

/** The days asked for, as far as anything is loaded; undefined for a project without a loaded day. */
export async function rangeOf(reader: Reader, project: string, asked: Asked): Promise<Range | undefined> {
  const [row] = await reader.query(EXTENT, extentRow, { project });
  const { first = null, last: end = null } = row ?? {};
  if (first === null || end === null) return undefined;
  const last = asked.to !== undefined && asked.to < end && asked.to >= first ? asked.to : end;
  const length = RANGES[asked.range === '' ? '13w' : asked.range];
  const start = asked.from ?? (length === Infinity ? first : addDays(last, 1 - length));
  const from = start < first || start > last ? first : start;
  const days = daysBetween(from, last) + 1;
  const grain = asked.grain === '' ? (days <= 100 ? 'day' : days <= 800 ? 'week' : 'month') : asked.grain;
  const shift = { before: days, year: 364, none: 0 }[asked.against];
  const week = addDays(periodOf('week', addDays(last, 1), ISO_CALENDAR).first, -7);
  const chosen = asked.from === undefined ? asked.range : '';
  return { first: from, last, days, chosen, grain, shift, week, extent: { first, last: end } };
}

const rowSchema = z.record(z.string(), z.json());
export type Row = z.infer<typeof rowSchema>;

/** Who asks for a page. */
export interface Asker {
  readonly visitor: Visitor;
  /** Aborts when nobody waits for the answer. */
  readonly signal: AbortSignal;
}

/** A request for a page, with what most pages need to answer it. */
export interface Asking extends Asker, Pick<Sources, 'workspace' | 'questions' | 'saved' | 'proposals'> {
  readonly now: Date;
  readonly actions: Pick<Actions, 'requests' | 'waiting'>;
  readonly reader: PublishedReader;
  readonly asked: Asked;
  readonly project: ProjectSettings;
  readonly range: Range;
  /** The rows of a query of `queries/`; it may name any parameter of the address and of the range. */
  readonly rows: (query: string, parameters?: Parameters) => Promise<Row[]>;
}

/** Rows of a list on one screen. */
export const PAGES_SHOWN = 50;

const queryText = (name: string): string => readSql(import.meta.url, `queries/${name}.sql`);

/** Asks queries with what the address of a page and its range say. */
export function askWith(
  reader: Reader,
  project: ProjectSettings,
  asked: Asked,
  range: Range,
): Asking['rows'] {
  const { first: from, last: to, grain, shift, week } = range;
  const { search, section, readers, sort, path } = asked;
  const common = {
    ...{ project: project.id, from, to, grain, shift, week },
    ...{ search, section, readers, sort, path, limit: PAGES_SHOWN, offset: (asked.page - 1) * PAGES_SHOWN },
  };
  return (query, parameters = {}) => reader.query(queryText(query), rowSchema, { ...common, ...parameters });
}
