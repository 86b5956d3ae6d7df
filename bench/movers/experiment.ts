import { z } from 'zod';
import { drawPairs } from '../../src/agents/pairs.js';
import { addDays } from '../../src/day.js';
import { queryRows } from '../../src/warehouse/query.js';
import { LAST_WEEK, withHistory } from './history.js';
import { mostRead, WEEKS_BEFORE } from './selection.js';
import { type Scenario, type SimulatedPage, simulateSite } from './simulate.js';

/** Experiments with so many pairs, in which people view the pages with a job `trueRatio` times as often. */
export interface Experiment {
  readonly noise: 'calm' | 'lively';
  readonly pairs: number;
  readonly trueRatio: number;
}

const noises = ['calm', 'lively'] as const;

export const EXPERIMENTS: readonly Experiment[] = [
  [8, 1],
  [15, 1],
  [15, 1.25],
  [30, 1],
  [30, 1.1],
].flatMap(([pairs = 0, trueRatio = 1]) => noises.map((noise) => ({ noise, pairs, trueRatio })));

export interface ExperimentScore {
  /** Share of the experiments that find a difference for people; without a true effect, these are false. */
  readonly clear: number;
  /** Share of the intervals that contain the true ratio. */
  readonly holds: number;
  /** The median ratio. */
  readonly ratio: number;
}

/** The week of the draw and the one of the merge, and the weeks after. */
const WEEKS_AFTER = 7;
const SITE: Scenario = { name: '', pages: 200, weeks: WEEKS_BEFORE + 1 + WEEKS_AFTER };
/** Experiments are stored so many at a time, to save memory. */
const AT_A_TIME = 100;

/** Measures experiments, each on a site of its own, by the view `experiment_effect`. */
export async function measuredExperiments(
  experiment: Experiment,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<ExperimentScore> {
  const found: z.infer<typeof effectRow>[] = [];
  for (let first = 0; first < sites; first += AT_A_TIME)
    found.push(...(await effects(experiment, firstSeed + first, Math.min(AT_A_TIME, sites - first))));
  const share = (is: (row: z.infer<typeof effectRow>) => boolean) => found.filter(is).length / found.length;
  return {
    clear: share(({ verdict }) => verdict === 'more views' || verdict === 'fewer views'),
    holds: share(({ low, high }) => low <= experiment.trueRatio && experiment.trueRatio <= high),
    ratio: found.map(({ ratio }) => ratio).sort((one, two) => one - two)[Math.floor(found.length / 2)] ?? 0,
  };
}

const effectRow = z.object({ verdict: z.string(), ratio: z.number(), low: z.number(), high: z.number() });

async function effects({ noise, pairs, trueRatio }: Experiment, firstSeed: number, sites: number) {
  const drawn = Array.from({ length: sites }, (_, site) => {
    const seed = firstSeed + site;
    const { pages } = simulateSite({ ...SITE, restlessness: noise === 'calm' ? 1 : 2 }, seed, false);
    const candidates = mostRead(pages, 2 * pairs);
    const twins = drawPairs(candidates.map(candidateOf), pairs, String(seed));
    const treated = new Set(twins.map((pair) => pair.treated));
    const after = (views: readonly number[]) =>
      views.map((count, week) => (week > WEEKS_BEFORE ? Math.round(count * trueRatio) : count));
    const measured = candidates.map((page): SimulatedPage =>
      treated.has(page.path) ? { ...page, views: { ...page.views, human: after(page.views.human) } } : page,
    );
    return { project: `site ${site}`, measured, twins };
  });
  const merged = addDays(LAST_WEEK, 2 - 7 * WEEKS_AFTER);
  const values = drawn.flatMap(({ project, twins }, site) =>
    twins.map(
      ({ treated, heldOut }, pair) =>
        `('${project}', ${pair}, ${1_000 * site + pair}, '${treated}', '${heldOut}')`,
    ),
  );
  return await withHistory(
    new Map(drawn.map(({ project, measured }) => [project, measured])),
    async (connection) => {
      await connection.run(`
        CREATE TABLE twins AS FROM (VALUES ${values.join(', ')}) AS twin (project, pair, job, treated, held_out);
        INSERT INTO agent_jobs BY NAME
        SELECT job AS id, project, treated AS path, 'completed' AS state, '' AS reason, '' AS prompt, 0 AS polls,
          TIMESTAMP '${merged}' AS planned_at, 'https://code.example.com/1' AS pr_link, DATE '${merged}' AS merged_on
        FROM twins;
        INSERT INTO experiment_pairs BY NAME
        SELECT project, pair, TIMESTAMP '${merged}' AS drawn_at, '' AS seed, page.path, page.is_treated, job AS job_id
        FROM twins, (VALUES (treated, true), (held_out, false)) AS page (path, is_treated)`);
      return await queryRows(
        connection,
        `SELECT verdict, ratio, low, high FROM experiment_effect WHERE audience = 'human'`,
        effectRow,
      );
    },
    'Mondays',
  );
}

function candidateOf({ path, views }: SimulatedPage) {
  const weeks = Array.from({ length: 8 }, (_, week) => {
    const at = WEEKS_BEFORE - 8 + week;
    return { week: LAST_WEEK, human: views.human[at] ?? 0, ai: views.ai[at] ?? 0 };
  });
  return { path, weeks };
}
