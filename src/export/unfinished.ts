import { DATE, INTEGER, VARCHAR } from '@duckdb/node-api';
import { z } from 'zod';
import type { Client } from '../api/client.js';
import type { Lease } from '../api/retry.js';
import { LIMITS, type ViewsResponse, viewsResponseSchema } from '../api/schema.js';
import type { Day } from '../day.js';
import { dateOf, dayColumn, type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { PageOfDay } from './walk.js';

const UNFINISHED_DAYS = readSql(import.meta.url, 'statements/unfinished-days.sql');
const UNFINISHED_PAGES = readSql(import.meta.url, 'statements/unfinished-pages.sql');
const DELETE_PAGES = 'DELETE FROM unfinished_pages WHERE project = $project AND day = $day::DATE';

const dayRow = z.object({ day: dayColumn, pages: z.int() });
const pageRow = z.object({ page_offset: z.int(), response: z.string() });

/** The days of a project that the hourly limit stopped, and how many of their pages are kept. */
export async function readUnfinishedDays(reader: Reader, project: string): Promise<Map<Day, number>> {
  // A history that an older version published has no such table.
  const isThere = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'unfinished_pages'";
  if ((await reader.query(isThere, z.object({}))).length === 0) return new Map();
  const rows = await reader.query(UNFINISHED_DAYS, dayRow, { project });
  return new Map(rows.map((row) => [row.day, row.pages]));
}

interface DayOf {
  readonly warehouse: Warehouse;
  readonly project: string;
  readonly day: Day;
}

/**
 * Stands in for the client while a day is walked, and requests only pages that are not kept already.
 * If the hourly limit stops the walk, its pages are kept, so a day of more requests than an hour
 * allows is loaded over several hours. The totals on each page show if it changed meanwhile.
 */
export class ResumableViews {
  readonly #of: DayOf;
  readonly #views: Client['views'];
  /** Pages that an earlier export kept. Each is used once: a second walk requests all pages again. */
  readonly #kept = new Map<number, ViewsResponse>();
  #unfinished: readonly PageOfDay[] = [];

  private constructor(of: DayOf, client: Pick<Client, 'views'>, lease: Lease) {
    this.#of = of;
    this.#views = (query, options) => client.views(query, { ...options, lease });
  }

  static async open(
    of: DayOf,
    client: Pick<Client, 'views'>,
    lease: Lease,
    isUnfinished: boolean,
  ): Promise<ResumableViews> {
    const resumable = new ResumableViews(of, client, lease);
    if (!isUnfinished) return resumable;
    for (const row of await of.warehouse.query(UNFINISHED_PAGES, pageRow, parametersOf(of)))
      resumable.#kept.set(row.page_offset, viewsResponseSchema.parse(JSON.parse(row.response)));
    return resumable;
  }

  readonly views: Client['views'] = async (query, options) => {
    // A second walk has smaller pages, which cannot continue a first walk.
    if (query.limit < LIMITS.viewsPage.max) this.#kept.clear();
    const kept = this.#kept.get(query.offset);
    this.#kept.delete(query.offset);
    return kept ?? (await this.#views(query, options));
  };

  /** The pages of a walk that the hourly limit stopped. */
  readonly onPaused = (pages: readonly PageOfDay[]): void => {
    this.#unfinished = pages;
  };

  /** Keeps the pages of a stopped walk, and drops those of earlier ones. */
  async end(isUnfinished: boolean): Promise<void> {
    const pages = this.#unfinished;
    if (pages.length === 0 && !isUnfinished) return;
    await this.#of.warehouse.groupCommit(async (transaction) => {
      await transaction.execute(DELETE_PAGES, parametersOf(this.#of));
      const { project, day } = this.#of;
      for (const { offset, ...page } of pages)
        await transaction.appendRow('unfinished_pages', [
          [VARCHAR, project],
          [DATE, dateOf(day)],
          [INTEGER, offset],
          [VARCHAR, JSON.stringify(page)],
        ]);
    });
  }
}

const parametersOf = ({ project, day }: DayOf) => ({ project, day });
