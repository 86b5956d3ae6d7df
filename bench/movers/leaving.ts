import { z } from 'zod';
import { addDays } from '../../src/day.js';
import { uniformFrom } from '../../src/sandbox/traffic/random.js';
import { queryRows } from '../../src/warehouse/query.js';
import { LAST_WEEK, withHistory } from './history.js';
import { type SimulatedPage, simulateSite } from './simulate.js';

/** Pages losing people but not AI, and as many losing both. */
const PLANTED = 5;
const WEEKS = 16;
const LEFT_FOR_WEEKS = 8;
/** The macro's minimum, with a margin. */
const HUMAN_VIEWS_LEAST = 60;

export interface LeavingScore {
  /** Share of the listed pages that are really losing people but not AI. */
  readonly precision: number;
  readonly recall: number;
  /** The same for the simple rule “people view it 20% less, AI does not”. */
  readonly plainPrecision: number;
  readonly plainRecall: number;
}

const PLAIN = `
  SELECT project, path FROM page_weeks WHERE week < '${addDays(LAST_WEEK, 7)}' GROUP BY ALL
  HAVING sum(human) FILTER (week < '${addDays(LAST_WEEK, -49)}' AND week >= '${addDays(LAST_WEEK, -105)}') >= 400
    AND sum(human) FILTER (week >= '${addDays(LAST_WEEK, -49)}')
      <= 0.8 * sum(human) FILTER (week < '${addDays(LAST_WEEK, -49)}' AND week >= '${addDays(LAST_WEEK, -105)}')
    AND sum(ai) FILTER (week >= '${addDays(LAST_WEEK, -49)}')
      > 0.8 * sum(ai) FILTER (week < '${addDays(LAST_WEEK, -49)}' AND week >= '${addDays(LAST_WEEK, -105)}')`;

export async function peopleLeaving(
  restlessness: number,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<LeavingScore> {
  const simulated = Array.from({ length: sites }, (_, index) => leftSite(restlessness, firstSeed + index));
  const projects = new Map(simulated.map(({ pages }, index) => [`site ${index}`, pages]));
  const really = new Set(simulated.flatMap(({ left }, index) => left.map((path) => `site ${index} ${path}`)));
  return await withHistory(projects, async (connection) => {
    const score = async (sql: string): Promise<[number, number]> => {
      const listed = await queryRows(connection, sql, z.object({ project: z.string(), path: z.string() }));
      const hits = listed.filter(({ project, path }) => really.has(`${project} ${path}`)).length;
      return [hits / Math.max(1, listed.length), hits / really.size];
    };
    const [precision, recall] = await score(
      `SELECT project, path FROM people_leaving('${addDays(LAST_WEEK, 7)}')`,
    );
    const [plainPrecision, plainRecall] = await score(PLAIN);
    return { precision, recall, plainPrecision, plainRecall };
  });
}

function leftSite(restlessness: number, seed: number): { pages: SimulatedPage[]; left: string[] } {
  const uniform = uniformFrom(seed, 11);
  const { pages } = simulateSite(
    { name: '', pages: 450, weeks: WEEKS, restlessness, growth: { human: -0.01, ai: 0.02 } },
    seed,
    false,
  );
  const large = pages
    .filter(({ views }) => (views.human[0] ?? 0) >= HUMAN_VIEWS_LEAST)
    .map(({ path }) => ({ path, place: uniform() }))
    .sort((one, two) => one.place - two.place)
    .map(({ path }) => path);
  const left = large.slice(0, PLANTED);
  const both = large.slice(PLANTED, 2 * PLANTED);
  return {
    left,
    pages: pages.map(({ path, views }) => {
      const factor = left.includes(path) || both.includes(path) ? 0.5 + 0.2 * uniform() : 1;
      const fallen = (weeks: readonly number[]) =>
        weeks.map((count, index) => (index > WEEKS - LEFT_FOR_WEEKS ? Math.round(count * factor) : count));
      return {
        path,
        views: { human: fallen(views.human), ai: both.includes(path) ? fallen(views.ai) : views.ai },
      };
    }),
  };
}
