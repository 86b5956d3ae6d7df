import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { queryRows } from '../../src/history/duckdb.js';
import { LAST_WEEK, withHistory } from './history.js';
import { type Scenario, type SimulatedSite, simulateSite } from './simulate.js';

const ranked = z.object({ project: z.string(), mover: z.string(), place: z.int() });

/** How often `movers` is right in a scenario. */
export interface Score {
  readonly scenario: Scenario;
  /** Share of the weeks without a planted mover in which it lists a page. */
  readonly any: number;
  /** Share of its first ten pages that really moved. */
  readonly precision: number;
  /** Share of the pages that really moved that are among its first ten; of ten, if there are more. */
  readonly recall: number;
}

/** Runs `movers` on `sites` quiet weeks and on as many with planted movers. */
export async function backtest(
  scenario: Scenario,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<Score> {
  const simulated = (planted: boolean): [string, SimulatedSite][] =>
    Array.from({ length: sites }, (_, site) => [
      `${planted ? 'planted' : 'quiet'} ${site}`,
      simulateSite(scenario, firstSeed + 2 * site + (planted ? 1 : 0), planted),
    ]);
  const all = new Map([...simulated(false), ...simulated(true)]);
  const pages = new Map([...all].map(([name, site]) => [name, site.pages]));
  return await withHistory(pages, async (connection) => ({
    scenario,
    ...judge(all, await listed(connection)),
  }));
}

const listed = (connection: DuckDBConnection): Promise<z.infer<typeof ranked>[]> =>
  queryRows(
    connection,
    `SELECT project, audience || ' ' || path AS mover,
       row_number() OVER (PARTITION BY project ORDER BY size DESC, path, audience) AS place
     FROM (
       SELECT project, path, unnest(if(audience = 'both', ['human', 'ai'], [audience])) AS audience, abs(change) AS size
       FROM movers('${LAST_WEEK}')
     )`,
    ranked,
  );

function judge(
  sites: ReadonlyMap<string, SimulatedSite>,
  rows: readonly z.infer<typeof ranked>[],
): Pick<Score, 'any' | 'precision' | 'recall'> {
  const falseAlarms = new Set<string>();
  let [quiet, hits, shown, really] = [0, 0, 0, 0];
  for (const row of rows) {
    const isTrue = sites.get(row.project)?.moved.has(row.mover) ?? false;
    if (row.project.startsWith('quiet')) {
      if (!isTrue) falseAlarms.add(row.project);
    } else if (row.place <= 10) {
      shown += 1;
      hits += isTrue ? 1 : 0;
    }
  }
  for (const [name, { moved }] of sites) {
    if (name.startsWith('quiet')) quiet += 1;
    else really += Math.min(10, moved.size);
  }
  return { any: falseAlarms.size / quiet, precision: shown === 0 ? 1 : hits / shown, recall: hits / really };
}
