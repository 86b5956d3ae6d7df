import { z } from 'zod';
import { addDays } from '../../src/day.js';
import { uniformFrom } from '../../src/sandbox/traffic/random.js';
import { queryRows } from '../../src/warehouse/query.js';
import { LAST_WEEK, withHistory } from './history.js';
import { type Scenario, type SimulatedPage, simulateSite } from './simulate.js';

/** A site where agents changed some pages, which people then view `trueRatio` times as often. */
export interface ChangedSite extends Scenario {
  readonly trueRatio: number;
  readonly jobs: number;
  /** This share of the pages vanishes after the change. */
  readonly vanishing?: number;
}

/** Eight weeks to choose the pages, eight before the change, its own week, and four after. */
const WEEKS = { chosenOn: 8, before: 8, after: 4 };
const EARLIER_WEEKS = WEEKS.chosenOn + WEEKS.before + WEEKS.after;
/** Jobs go to some of the most viewed pages, which are this many times the number of jobs. */
const CHOSEN_FROM = 3;

const calm = { pages: 200, weeks: EARLIER_WEEKS, jobs: 15, growth: { human: 0.01, ai: 0.03 } };
const few = { ...calm, pages: 20, jobs: 6, volume: 0.5 };

export const CHANGED_SITES: readonly ChangedSite[] = [
  ...[1, 1.1, 1.25, 1.5].flatMap((trueRatio) => [
    { ...calm, name: 'calm', trueRatio },
    { ...calm, name: 'lively', restlessness: 2, trueRatio },
  ]),
  { ...calm, name: 'a tenth of the pages vanishes', vanishing: 0.1, trueRatio: 1 },
  { ...few, name: 'few pages', trueRatio: 1 },
  { ...few, name: 'few pages', trueRatio: 1.5 },
];

export interface EffectScore {
  readonly site: ChangedSite;
  /** Share of the jobs with a verdict whose pages are said to be viewed more or less by people. */
  readonly clear: number;
  /** Share of the jobs without a verdict. */
  readonly untold: number;
  /** The median and the widest interval, as high over low. */
  readonly width: number;
  readonly widest: number;
  /** Share of the intervals that contain the true ratio. */
  readonly holds: number;
  /** Share of the sites where all changes together are said to be viewed more or less. */
  readonly togetherClear: number;
}

const score = z.object({
  ...{ clear: z.number(), untold: z.number(), holds: z.number(), width: z.number(), widest: z.number() },
  togetherClear: z.number(),
});

export async function measuredEffects(
  site: ChangedSite,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<EffectScore> {
  const simulated = Array.from({ length: sites }, (_, index) => changedSite(site, firstSeed + index));
  const projects = new Map(simulated.map(({ pages }, index) => [`site ${index}`, pages]));
  const merged = addDays(LAST_WEEK, 2 - 7 * WEEKS.after);
  const jobs = simulated.flatMap(({ chosen }, index) =>
    chosen.map((path, number) => `(${100 * index + number}, 'site ${index}', '${path}')`),
  );
  return await withHistory(projects, async (connection) => {
    await connection.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT id, project, path, 'completed' AS state, '' AS reason, '' AS prompt, 0 AS polls,
        TIMESTAMP '${merged}' AS planned_at, TIMESTAMP '${merged}' AS submitted_at, TIMESTAMP '${merged}' AS ended_at,
        'https://code.example.com/1' AS pr_link, DATE '${merged}' AS merged_on
      FROM (VALUES ${jobs.join(', ')}) AS job (id, project, path)`);
    const [found] = await queryRows(
      connection,
      `SELECT
         coalesce(avg((verdict IN ('more views', 'fewer views'))::INTEGER) FILTER (low IS NOT NULL), 0) AS clear,
         avg((low IS NULL)::INTEGER) AS untold,
         coalesce(avg(($trueRatio BETWEEN low AND high)::INTEGER), 0) AS holds,
         coalesce(median(high / low), 0) AS width,
         coalesce(max(high / low), 0) AS widest,
         (SELECT avg((verdict IN ('more views', 'fewer views'))::INTEGER) FROM project_effects WHERE audience = 'human') AS togetherClear
       FROM job_effects WHERE audience = 'human'`,
      score,
      { trueRatio: site.trueRatio },
    );
    if (found === undefined) throw new Error('no effect was measured');
    return { site, ...found };
  });
}

function changedSite(site: ChangedSite, seed: number): { pages: SimulatedPage[]; chosen: string[] } {
  const uniform = uniformFrom(seed, 3);
  const { pages } = simulateSite(site, seed, false);
  const ranked = [...pages]
    .sort((one, two) => sustained(two) - sustained(one))
    .slice(0, CHOSEN_FROM * site.jobs)
    .map(({ path }) => ({ path, place: uniform() }))
    .sort((one, two) => one.place - two.place);
  const chosen = ranked.slice(0, site.jobs).map(({ path }) => path);
  const isAfter = (index: number) => index > EARLIER_WEEKS - WEEKS.after;
  return {
    chosen,
    pages: pages.map(({ path, views }) => {
      const isGone = !chosen.includes(path) && uniform() < (site.vanishing ?? 0);
      const factor = isGone ? 0 : chosen.includes(path) ? site.trueRatio : 1;
      return {
        path,
        views: {
          human: views.human.map((count, index) => (isAfter(index) ? Math.round(count * factor) : count)),
          ai: views.ai.map((count, index) => (isAfter(index) && isGone ? 0 : count)),
        },
      };
    }),
  };
}

/** Views in a median week of those by which pages are selected. */
const sustained = ({ views }: SimulatedPage): number =>
  views.human
    .slice(0, WEEKS.chosenOn)
    .sort((one, two) => one - two)
    .at(WEEKS.chosenOn / 2) ?? 0;
