import { type ImprovePlan, planImprovement, type PlanOccasion } from '../../src/agents/plan.js';
import { readRanking } from '../../src/agents/ranking.js';
import { type Settings, settingsSchema } from '../../src/config/schema.js';
import type { Reader } from '../../src/history/duckdb.js';
import type { State } from '../../src/state/state.js';
import { day } from '../../src/day.js';
import { referenceOf } from '../../src/agents/jobs.js';
import type { Evidence, NewJob } from '../../src/state/jobs.js';
import { execute } from '../open-history.js';
import type { HistoryStore } from '../../src/history/store.js';

/** Views a page gets on each day. */
export interface DailyReading {
  readonly path: string;
  readonly human: number;
  readonly ai: number;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** SQL that stores these views for every day of a range, each day loaded and final. */
export const readingSql = (
  pages: readonly DailyReading[],
  { project = 'prj_sandbox', first = '2026-09-14', last = '2026-11-15' } = {},
): string => `
  INSERT INTO page_views
  SELECT ${quoted(project)}, calendar.day::DATE, path, page_of(path), human, ai, human + ai
  FROM (VALUES ${pages.map(({ path, human, ai }) => `(${quoted(path)}, ${human}, ${ai})`).join(', ')}) AS page (path, human, ai),
    generate_series(DATE '${first}', DATE '${last}', INTERVAL 1 DAY) AS calendar (day);
  INSERT INTO days
  SELECT project, day, 'final', TIMESTAMP '2026-11-18 02:00:00', TIMESTAMP '2026-11-18 02:00:00', TIMESTAMP '2026-11-18 02:00:00',
    sum(human), sum(ai), sum(total), count(*), 0, 0, 0, NULL, 0
  FROM page_views WHERE project = ${quoted(project)} GROUP BY ALL`;

/** As `readingSql`, run on a history that its worker has open. */
export const storeReading = (history: HistoryStore, ...reading: Parameters<typeof readingSql>) =>
  execute(history, readingSql(...reading));

/** `count` pages, each with slightly fewer views than the one before, all above the default minimum. */
export const steadyPages = (count: number): DailyReading[] =>
  Array.from({ length: count }, (_, index) => ({
    path: `/guides/page-${index + 1}`,
    human: 100 + count - index,
    ai: 50,
  }));

/** Five jobs a week, of pages with 200 views. */
export const RULES = settingsSchema.parse({
  baseUrl: 'http://127.0.0.1',
  projects: [{ id: 'prj_sandbox' }],
  improve: {
    minWeeklyViews: 200,
    exclude: [],
    cooldownDays: 56,
    maxJobsPerWeek: 5,
    maxOpenPullRequests: 10,
  },
}).improve;

export const EVIDENCE: Evidence = {
  weekly_human: 900,
  weekly_ai: 300,
  trend: 0.1,
  weeks: [{ week: day('2026-11-09'), human: 900, ai: 300 }],
};

/** A job for a page, to be planned. */
export function jobFor(path: string, now: Date, given: Partial<NewJob> = {}): NewJob {
  const project = given.project ?? 'prj_sandbox';
  const prompt = `Improve ${path}`;
  const job = { project, path, is_approved: false, reason: 'much read', prompt, planned_at: now };
  return { reference: referenceOf(project, path, now), ...job, ...EVIDENCE, ...given };
}

/** Decides as `improve` does, with the pages that a history has. */
export const planFrom = async (
  { reader, state }: { readonly reader: Reader; readonly state: State },
  project: string,
  rules: Settings['improve'],
  occasion: PlanOccasion,
): Promise<ImprovePlan> => {
  const { now } = occasion;
  const ranking = await readRanking(reader, { id: project }, rules, { sitemap: undefined, now });
  return planImprovement(state, project, rules, ranking, occasion);
};
