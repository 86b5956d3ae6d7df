import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { addDays } from '../../src/day.js';
import { uniformFrom } from '../../src/sandbox/traffic/random.js';
import { queryRows } from '../../src/warehouse/query.js';
import { LAST_WEEK, withHistory } from './history.js';
import { mostRead, WEEKS_BEFORE } from './selection.js';
import { type Scenario, type SimulatedPage, simulateSite } from './simulate.js';

/** A site where agents changed some pages, which people then view `trueRatio` times as often. */
export interface ChangedSite extends Scenario {
  readonly trueRatio: number;
  readonly jobs: number;
  /** This share of the pages vanishes after the change. */
  readonly vanishing?: number;
}

/** The weeks on which the selection is based, that of the change, and those after it. */
const AFTER = 4;
const WEEKS = WEEKS_BEFORE + 1 + AFTER;
/** Jobs go to some of the most viewed pages, which are this many times the number of jobs. */
const CHOSEN_FROM = 3;

const growth = { human: 0.01, ai: 0.03 };
const calm = {
  pages: 200,
  weeks: WEEKS - 1,
  jobs: 15,
  growth,
  trueRatio: 1,
} as const;
const few = { ...calm, name: 'few pages', pages: 20, jobs: 6, volume: 0.5 };

export const CHANGED_SITES: readonly ChangedSite[] = [
  ...[1, 1.1, 1.25, 1.5].flatMap((trueRatio) => [
    { ...calm, name: 'calm', trueRatio },
    { ...calm, name: 'lively', restlessness: 2, trueRatio },
  ]),
  { ...calm, name: 'pages with growth of their own', ownGrowth: 0.02 },
  { ...calm, name: 'a tenth of the pages vanishes', vanishing: 0.1 },
  few,
  { ...few, trueRatio: 1.5 },
];

export interface EffectScore {
  readonly site: ChangedSite;
  /** Share of the jobs with a verdict whose pages are said to be viewed more or less by people. */
  readonly clear: number;
  /** Share of the jobs without a verdict. */
  readonly untold: number;
  readonly jobs: number;
  /** The median ratio. */
  readonly ratio: number;
  /** The median and the widest interval, as high over low. */
  readonly width: number;
  readonly widest: number;
  /** Share of the intervals that contain the true ratio. */
  readonly holds: number;
  /** Share of the sites where all changes together are said to be viewed more or less. */
  readonly togetherClear: number;
}

const score = z.object({
  jobs: z.int(),
  clear: z.number(),
  untold: z.number(),
  ratio: z.number(),
  holds: z.number(),
  width: z.number(),
  widest: z.number(),
  togetherClear: z.number(),
});

export async function measuredEffects(
  site: ChangedSite,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<EffectScore> {
  const simulated = Array.from({ length: sites }, (_, index) => changedSite(site, firstSeed + index));
  const projects = new Map(simulated.map(({ pages }, index) => [`site ${index}`, pages]));
  const merged = addDays(LAST_WEEK, 2 - 7 * AFTER);
  const changed = simulated.flatMap(({ chosen }, index) =>
    chosen.map((path) => `('site ${index}', '${path}')`),
  );
  const use = async (connection: DuckDBConnection) => {
    await connection.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT row_number() OVER () AS id, project, path, 'completed' AS state, '' AS reason, '' AS prompt, 0 AS polls,
        TIMESTAMP '${merged}' AS planned_at, TIMESTAMP '${merged}' AS submitted_at, TIMESTAMP '${merged}' AS ended_at,
        'https://code.example.com/1' AS pr_link, DATE '${merged}' AS merged_on
      FROM (VALUES ${changed.join(', ')}) AS job (project, path)
      QUALIFY row_number() OVER (PARTITION BY project) <= ${site.jobs}`);
    const [found] = await queryRows(
      connection,
      `SELECT
         count(*) AS jobs,
         coalesce(avg((verdict IN ('more views', 'fewer views'))::INTEGER) FILTER (low IS NOT NULL), 0) AS clear,
         avg((low IS NULL)::INTEGER) AS untold,
         coalesce(median(ratio) FILTER (low IS NOT NULL), 0) AS ratio,
         coalesce(avg(($trueRatio BETWEEN low AND high)::INTEGER), 0) AS holds,
         coalesce(median(high / low), 0) AS width,
         coalesce(max(high / low), 0) AS widest,
         coalesce((SELECT avg((verdict IN ('more views', 'fewer views'))::INTEGER) FROM project_effects WHERE audience = 'human' AND verdict <> 'cannot tell'), 0) AS togetherClear
       FROM job_effects WHERE audience = 'human'`,
      score,
      { trueRatio: site.trueRatio },
    );
    if (found === undefined) throw new Error('no effect was measured');
    return { site, ...found };
  };
  return await withHistory(projects, use, 'Mondays');
}

function changedSite(site: ChangedSite, seed: number): { pages: SimulatedPage[]; chosen: string[] } {
  const uniform = uniformFrom(seed, 3);
  const { pages } = simulateSite(site, seed, false);
  const ranked = mostRead(pages, CHOSEN_FROM * site.jobs)
    .map(({ path }) => ({ path, place: uniform() }))
    .sort((one, two) => one.place - two.place);
  const chosen = ranked.slice(0, site.jobs).map(({ path }) => path);
  const isAfter = (index: number) => index >= WEEKS - AFTER;
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
