import { z } from 'zod';
import { addDays, type Day } from '../day.js';
import { filledIn, readSql } from './query.js';
import type { Warehouse } from './warehouse.js';

const LACKING_MOVERS = readSql(import.meta.url, 'statements/lacking-movers.sql');
const FORGET_MOVERS = readSql(import.meta.url, 'statements/forget-movers.sql');
const KEEP_MOVERS = readSql(import.meta.url, 'statements/keep-movers.sql');

/**
 * Keeps what the macro `movers` answers for the week that begins on `week` and for the one before: with 200,000 pages,
 * computing it takes a second and more. Does nothing as long as what the answers depend on stays the same.
 */
export async function keepMovers(warehouse: Warehouse, week: Day): Promise<void> {
  for (const first of [addDays(week, -7), week]) {
    // DuckDB reads less for values than for parameters.
    const about = (sql: string) => filledIn(sql, { week: first });
    const lacking = await warehouse.query(about(LACKING_MOVERS), z.object({}));
    if (lacking.length === 0) continue;
    await warehouse.transaction(async (transaction) => {
      await transaction.execute(about(FORGET_MOVERS));
      await transaction.execute(about(KEEP_MOVERS));
    });
  }
}
