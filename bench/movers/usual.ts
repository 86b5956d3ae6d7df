import { DuckDBInstance } from '@duckdb/node-api';
import { z } from 'zod';
import { poisson, uniformFrom } from '../../src/sandbox/traffic/random.js';
import { createSchema } from '../../src/history/schema.js';
import { queryRows } from '../../src/history/duckdb.js';
import { LAST_WEEK } from './history.js';
import { normal } from './simulate.js';

/** The weekly views of a whole site. */
interface Course {
  readonly name: string;
  readonly weeks: number;
  readonly growth: number;
  /** Weekly standard deviation of the logarithm. */
  readonly noise: number;
  /** Over the year, views vary by this much, on a log scale, with the peak in any week. */
  readonly season?: number;
  /** Weeks ago when growth stopped. */
  readonly stopped?: number;
  /** The same week of each year has half the views. */
  readonly hasHoliday?: boolean;
}

export const COURSES: readonly Course[] = [
  ...[8, 10, 12, 30].flatMap((weeks) =>
    [0, -0.03, -0.01, 0.02, 0.05].map((growth) => ({
      name: `${growth === 0 ? 'flat' : `${growth > 0 ? 'growing' : 'falling'} by ${Math.abs(100 * growth)}% a week`}, ${weeks} earlier weeks`,
      ...{ weeks, growth, noise: 0.06 },
    })),
  ),
  { name: 'flat, lively, 30 earlier weeks', weeks: 30, growth: 0, noise: 0.15 },
  { name: 'a season of ±28%, 70 earlier weeks', weeks: 70, growth: 0, noise: 0.06, season: 0.25 },
  { name: 'growth of 5% a week stopped 6 weeks ago', weeks: 30, growth: 0.05, noise: 0.06, stopped: 6 },
  { name: 'growth of 5% a week stopped 3 weeks ago', weeks: 30, growth: 0.05, noise: 0.06, stopped: 3 },
  { name: 'flat, holiday each year, 70 earlier weeks', weeks: 70, growth: 0, noise: 0.06, hasHoliday: true },
];

export interface UsualScore {
  readonly name: string;
  /** Share of weeks inside their usual range. */
  readonly inside: number;
  /** Share of weeks called a record. */
  readonly records: number;
  /** The median range, as high over low. */
  readonly width: number;
}

const row = z.object({ inside: z.number(), records: z.number(), width: z.number() });

/** The usual ranges of the last week of `sites` sites on which nothing unusual happens. */
export async function usualRangeHolds(
  course: Course,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<UsualScore> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await createSchema(connection);
    const values = Array.from({ length: sites }, (_, site) =>
      weeklyViews(course, firstSeed + site).map((views, ago) => `('site ${site}', ${ago}, ${views})`),
    ).flat();
    await connection.run(`
      INSERT INTO days BY NAME
      SELECT project, DATE '${LAST_WEEK}' - 7 * ago::INTEGER + weekday::INTEGER AS day, 'final' AS state,
        TIMESTAMP '2026-12-01' AS first_loaded_at, first_loaded_at AS loaded_at, loaded_at AS checked_at,
        (views + weekday) // 7 AS human, 0 AS ai, human AS total, 1 AS pages,
        0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
      FROM (VALUES ${values.join(', ')}) AS week (project, ago, views), range(7) AS days (weekday)`);
    const [score] = await queryRows(
      connection,
      `SELECT coalesce(avg((views BETWEEN low AND high)::INTEGER), 0) AS inside, avg(is_record::INTEGER) AS records,
         median(high / low) AS width
       FROM usual_range('${LAST_WEEK}') WHERE audience = 'human'`,
      row,
    );
    if (score === undefined) throw new Error('no week was judged');
    return { name: course.name, ...score };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Newest first. Noise carries over to the next week by 0.3. */
function weeklyViews(
  { weeks, growth, noise, season = 0, stopped = 0, hasHoliday }: Course,
  seed: number,
): number[] {
  const uniform = uniformFrom(seed, weeks, 7);
  const peak = 52 * uniform();
  let carried = noise * normal(uniform);
  return Array.from({ length: weeks + 1 }, (_, index) => {
    carried = 0.3 * carried + noise * Math.sqrt(1 - 0.3 ** 2) * normal(uniform);
    const ago = weeks - index;
    const isHoliday = hasHoliday === true && ago % 52 === 0;
    const seasonal = season * Math.cos((2 * Math.PI * (index - peak)) / 52);
    const level = 20_000 * (1 + growth) ** Math.min(index, weeks - stopped) * Math.exp(carried + seasonal);
    return poisson(level * (isHoliday ? 0.5 : 1), uniform);
  }).toReversed();
}
