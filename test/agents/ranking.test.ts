import { addDays as addDaysTo } from 'date-fns';
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import type { PlanRules } from '../../src/agents/plan.js';
import { addDays, day, dayOf } from '../../src/day.js';
import { recordSkip } from '../../src/state/choices.js';
import { tries } from '../fuzz.js';
import { type Job, readJob } from '../../src/state/jobs.js';
import { emptyState } from '../../src/state/open.js';
import type { State } from '../../src/state/state.js';
import { changeJob, planJob } from '../../src/agents/job.js';
import { storeReview } from '../../src/agents/merges.js';
import { jobFor, planFrom } from './reading.js';
import { emptyHistory, type TestHistory } from '../reports/history.js';
import { NOW } from '../sandbox/open-sandbox.js';

const FIRST_WEEK = day('2026-09-21');
const WEEKS = 8;

/** What keeps a page from getting a job, besides the limits. */
const FATES = [
  'free',
  'excluded',
  'skipped',
  'active',
  'in review',
  'merged',
  'rejected',
  'made up',
] as const;
type Fate = (typeof FATES)[number];

/** Views of a day by people and AI in each week, which may have a spike. AI reads half of them at another address. */
interface SitePage {
  readonly weeks: readonly { readonly human: number; readonly ai: number }[];
  readonly fate: Fate;
}

const level = fc.oneof(fc.nat(40), fc.nat(400), fc.constant(0));
const page: fc.Arbitrary<SitePage> = fc.record({
  weeks: fc.array(fc.record({ human: level, ai: level }), { minLength: WEEKS, maxLength: WEEKS }),
  fate: fc.constantFrom('free' as const, 'free' as const, ...FATES),
});
const site = fc.record({
  pages: fc.array(page, { minLength: 1, maxLength: 25 }),
  maxJobsPerWeek: fc.integer({ min: 1, max: 8 }),
  minWeeklyViews: fc.constantFrom(0, 200, 1000),
});

const pathOf = (fate: Fate, index: number): string =>
  fate === 'excluded' ? `/changelog/${index}` : fate === 'made up' ? `/a b${index}` : `/page-${index}`;

/** The pages of a site from the most to the least viewed in their median week, written down once more. */
function rankingOf(pages: readonly SitePage[]) {
  const ranked = pages.map(({ weeks, fate }, index) => {
    const sums = weeks.map(({ human, ai }) => 7 * (human + ai)).sort((one, two) => one - two);
    const typical = ((sums[WEEKS / 2 - 1] ?? 0) + (sums[WEEKS / 2] ?? 0)) / 2;
    const isGone = 4 * 7 * ((weeks.at(-1)?.human ?? 0) + (weeks.at(-1)?.ai ?? 0)) < typical;
    const daysViewed = 7 * weeks.filter(({ human, ai }) => human + ai > 0).length;
    const daysByPeople = 7 * weeks.filter(({ human }) => human > 0).length;
    return {
      path: pathOf(fate, index),
      fate,
      typical,
      isGone,
      isRegular: daysViewed >= 14 && daysByPeople >= 7,
    };
  });
  return ranked
    .filter((_, index) => pages[index]?.weeks.some(({ human, ai }) => human + ai > 0))
    .sort((one, two) => two.typical - one.typical || (one.path < two.path ? -1 : 1));
}

let history: TestHistory;
let state: State;
beforeAll(async () => {
  history = await emptyHistory();
});

async function store(pages: readonly SitePage[]): Promise<void> {
  state = emptyState();
  const last = addDays(FIRST_WEEK, 7 * WEEKS - 1);
  const views = pages.flatMap(({ weeks, fate }, index) =>
    weeks.map(({ human, ai }, week) => `('${pathOf(fate, index)}', ${week}, ${human}, ${ai})`),
  );
  for (const table of ['page_views', 'days']) await history.run(`DELETE FROM ${table}`);
  await history.run(`
    INSERT INTO page_views
    SELECT 'prj_1', DATE '${FIRST_WEEK}' + 7 * week::INTEGER + weekday::INTEGER, address, path, read, asked, read + asked
    FROM (VALUES ${views.join(', ')}) AS view (path, week, human, ai),
      range(7) AS days (weekday),
      LATERAL (VALUES (path || '/', human, ai // 2), (path || '.md', 0, ai - ai // 2)) AS of_address (address, read, asked)
    WHERE read + asked > 0;
    INSERT INTO days
    SELECT 'prj_1', day::DATE, 'final', TIMESTAMP '2026-11-18 02:00:00', TIMESTAMP '2026-11-18 02:00:00', TIMESTAMP '2026-11-18 02:00:00',
      coalesce(sum(human), 0), coalesce(sum(ai), 0), coalesce(sum(total), 0), count(path), 0, 0, 0, NULL, 0
    FROM generate_series(DATE '${FIRST_WEEK}', DATE '${last}', INTERVAL 1 DAY) AS calendar (day)
    LEFT JOIN page_views USING (day)
    GROUP BY day`);
  state = emptyState();
  for (const [index, { fate }] of pages.entries()) await storeFate(fate, index);
}

async function storeFate(fate: Fate, index: number): Promise<void> {
  const path = pathOf(fate, index);
  if (fate === 'skipped')
    await state.transaction(() => {
      recordSkip(state, { project: 'prj_1', path }, addDaysTo(NOW, -17), null);
    });
  const isMerged = fate === 'merged';
  if (!['active', 'in review', 'merged', 'rejected'].includes(fate)) return;
  const at = addDaysTo(NOW, -10);
  await state.transaction(() => {
    const job = planJob(state, jobFor(path, at, { project: 'prj_1' }));
    const sending = changeJob(state, jobOf(job), { event: 'submit', now: at, cause: '' });
    const prLink = fate === 'active' ? null : `https://code.example.com/${index}`;
    const remote = { id: `job_${index}`, status: fate === 'active' ? 'active' : 'completed', prLink };
    changeJob(state, sending, { event: 'sent', now: at, cause: '', remote });
    const reviewedOn = dayOf(at);
    const review = {
      merged_on: isMerged ? reviewedOn : null,
      closed_on: fate === 'rejected' ? reviewedOn : null,
    };
    if (isMerged || fate === 'rejected') storeReview(state, jobOf(job), { ...review, cause: '' }, at);
  });
}

const jobOf = (id: number): Job => readJob(state, id) ?? expect.fail(`no job ${id}`);

it('on any site, the proposals are the beginning of the ranking by typical weeks, without the pages that may have no job', async () => {
  const property = fc.asyncProperty(site, async ({ pages, maxJobsPerWeek, minWeeklyViews }) => {
    await store(pages);
    const rules: PlanRules = {
      ...{ minWeeklyViews, maxJobsPerWeek, maxOpenPullRequests: 1000, cooldownDays: 56 },
      exclude: ['/changelog/**'],
    };
    const plan = await planFrom({ state, reader: history.reader }, 'prj_1', rules, {
      now: NOW,
      isListed: undefined,
    });
    const ranking = rankingOf(pages);
    const enough = ranking.filter(({ typical }) => typical > 0 && typical >= minWeeklyViews);
    const qualifying = enough.filter(
      ({ fate, isGone, isRegular }) => fate === 'free' && !isGone && isRegular,
    );
    const inLine = [...plan.flagged, ...plan.next];
    expect(inLine.map(({ path }) => path)).toEqual(qualifying.map(({ path }) => path));
    expect(plan.flagged).toHaveLength(Math.min(qualifying.length, maxJobsPerWeek));
    expect(plan.leftOut).toHaveLength(enough.length - qualifying.length);
    expect(plan.belowMinimum).toBe(ranking.length - enough.length);
    for (const { path, why, evidence } of inLine) {
      const rank = ranking.findIndex((ranked) => ranked.path === path) + 1;
      expect(why, path).toMatchObject({ rank, pages: ranking.length });
      expect(evidence.weekly_human + evidence.weekly_ai, path).toBe(ranking[rank - 1]?.typical);
    }
  });
  await fc.assert(property, tries(40));
});
