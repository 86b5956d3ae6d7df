import { z } from 'zod';
import { addDays } from '../../src/day.js';
import { poisson, uniformFrom } from '../../src/sandbox/traffic/random.js';
import { queryRows } from '../../src/warehouse/query.js';
import { LAST_WEEK, withHistory } from './history.js';
import { type Scenario, type SimulatedPage, simulateSite } from './simulate.js';

const WEEKS_NEEDED = 17;
/** Weeks in which nothing breaks, for each site. */
const QUIET_WEEKS = 26;

const calm: Scenario = { name: 'calm', pages: 450, weeks: WEEKS_NEEDED + QUIET_WEEKS };

export const BREAKABLE_SITES: readonly Scenario[] = [
  calm,
  { ...calm, name: 'lively', restlessness: 2 },
  { ...calm, name: 'growth of 2% and 5% a week', growth: { human: 0.02, ai: 0.05 } },
  { ...calm, name: 'Christmas', season: { ago: 9, factor: 0.5, spread: 0.15 } },
  { ...calm, name: 'an AI crawl', crawl: { ago: 9, share: 0.8, visits: 6 } },
  { ...calm, name: 'calm', pages: 100 },
];

export interface BreakScore {
  /** Share of the sites whose break is named when its first seven days are loaded. */
  readonly named: number;
  /** False breaks in fifty years of one site. */
  readonly falseInFiftyYears: number;
}

/** In the last week, 5 to 20% of the human views of each site become AI views. */
export async function likelyBreaks(
  scenario: Scenario,
  { sites, firstSeed }: { sites: number; firstSeed: number },
): Promise<BreakScore> {
  const all = Array.from({ length: sites }, (_, site) => {
    const uniform = uniformFrom(firstSeed + site, 17);
    const { pages } = simulateSite(scenario, firstSeed + site, false);
    const share = 0.05 + 0.15 * uniform();
    const broken = pages.map((page): SimulatedPage => {
      const human = page.views.human.at(-1) ?? 0;
      const moved = Math.min(human, poisson(share * human, uniform));
      const last = (views: readonly number[], more: number) => [
        ...views.slice(0, -1),
        (views.at(-1) ?? 0) + more,
      ];
      return { ...page, views: { human: last(page.views.human, -moved), ai: last(page.views.ai, moved) } };
    });
    return [`site ${site}`, broken] as const;
  });
  const projects = new Map(all);
  return await withHistory(
    projects,
    async (connection) => {
      const found = async (weeksAgo: number): Promise<number> => {
        const lastDay = addDays(LAST_WEEK, 6 - 7 * weeksAgo);
        const rows = await queryRows(
          connection,
          `FROM likely_breaks('${lastDay}')`,
          z.object({ from_audience: z.string() }),
        );
        return rows.length;
      };
      const named = await found(0);
      let falsely = 0;
      for (let week = 1; week <= QUIET_WEEKS; week += 1) falsely += await found(week);
      return { named: named / sites, falseInFiftyYears: (falsely / sites / QUIET_WEEKS) * 52 * 50 };
    },
    'Mondays',
  );
}
