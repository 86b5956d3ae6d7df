import { describe, expect, it } from 'vitest';
import { busyPages, roomLeft } from '../../src/agents/plan.js';
import { type Reason, wordsOf } from '../../src/agents/reasons.js';
import { type Candidate, selectPages, type SelectionRules } from '../../src/agents/select.js';
import { addDays, day } from '../../src/day.js';

const RULES: SelectionRules = {
  ...{ minWeeklyViews: 100, readingShare: 1, humanWeight: 1, aiWeight: 1, exclude: [] },
};
const LIMIT: Reason = { code: 'limit', setting: 'maxJobsPerRun', limit: 5 };
const HAS_JOB: Reason = { code: 'has-job', job: 4, state: 'active' };
const FREE = { busy: new Map<string, Reason>(), isListed: undefined, room: { count: 99, limit: LIMIT } };

/** A page with the same views in each of eight weeks. */
const page = (
  path: string,
  weekly_human: number,
  weekly_ai = 0,
  changes: Partial<Candidate> = {},
): Candidate => ({
  ...{ path, weekly_human, weekly_ai, human_rank: 1, ai_rank: 1, ai_per_human: 0, trend: 0 },
  weeks: Array.from({ length: 8 }, (_, index) => ({
    ...{ week: addDays(day('2026-09-21'), 7 * index), human: weekly_human, ai: weekly_ai },
  })),
  ...{ days_viewed: 56, days_viewed_by_people: 56, leaving: null, ...changes },
});

const flaggedBy = (pages: Candidate[], rules: Partial<SelectionRules> = {}, around = {}) =>
  selectPages(pages, { ...RULES, ...rules }, { ...FREE, ...around }).flagged.map(({ path }) => path);

const whyNot = (candidate: Candidate, rules: Partial<SelectionRules> = {}, around = {}) =>
  selectPages([candidate], { ...RULES, ...rules }, { ...FREE, ...around }).leftOut.map(({ why }) =>
    wordsOf(why),
  );

describe('which pages deserve an agent', () => {
  it('those with the most sustained traffic, best first, in a stable order', () => {
    expect(flaggedBy([page('/c', 200), page('/b', 300, 50), page('/a', 350), page('/d', 99)])).toEqual([
      ...['/a', '/b', '/c'],
    ]);
  });

  it('people and AI weighted as configured', () => {
    const pages = [page('/people', 500, 0), page('/ai', 0, 400)];
    expect(flaggedBy(pages, { aiWeight: 2 })).toEqual(['/ai', '/people']);
    expect(flaggedBy(pages, { aiWeight: 0 })).toEqual(['/people']);
  });

  it('those that together have the configured share of all views, and no more', () => {
    const pages = [page('/a', 500), page('/b', 300), page('/c', 150), page('/d', 50)];
    const { flagged, beyondShare, belowFloor } = selectPages(pages, { ...RULES, readingShare: 0.8 }, FREE);
    expect(flagged.map(({ path }) => path)).toEqual(['/a', '/b']);
    expect({ beyondShare, belowFloor }).toEqual({ beyondShare: 1, belowFloor: 1 });
  });

  it('with a reason and the numbers behind it', () => {
    const changes = { human_rank: 2, ai_rank: 7, ai_per_human: 0.25, trend: 0.12 };
    const [flagged] = selectPages([page('/a', 1200, 300, changes)], RULES, FREE).flagged;
    expect(flagged && wordsOf(flagged.why)).toBe(
      '#1 in sustained traffic, with 1,200 human views (#2) and 300 AI views (#7) in a median week of the last 8; +12% compared with the 4 weeks before, 0.3 AI views per human view',
    );
    expect(flagged?.evidence).toMatchObject({ weekly_human: 1200, ...changes });
    expect(flagged?.evidence.weeks).toHaveLength(8);
  });

  it('first those losing people but not AI, even beyond that share, and the reason mentions it', () => {
    const leaving = { human_change: -0.35, ai_change: 0.03 };
    const pages = [
      page('/a', 500),
      page('/b', 300),
      page('/c', 150, 0, { leaving }),
      page('/d', 50, 0, { leaving }),
    ];
    const { flagged, beyondShare } = selectPages(pages, { ...RULES, readingShare: 0.5 }, FREE);
    expect(flagged.map(({ path }) => path)).toEqual(['/c', '/a']);
    expect(flagged[0] && wordsOf(flagged[0].why)).toMatch(
      /^losing people but not AI: human views −35% and AI views \+3% over eight weeks, relative to the median page; #3 in/,
    );
    expect(beyondShare).toBe(1);
  });

  it('none with fewer than four whole weeks', () => {
    const young = page('/a', 900);
    expect(flaggedBy([{ ...young, weeks: young.weeks.slice(0, 3) }])).toEqual([]);
  });
});

describe('which pages are left out, and why', () => {
  it.each<[string, string[]]>([
    ['excluded by a glob', whyNot(page('/changelog/2026/may', 500), { exclude: ['/changelog/**'] })],
    ['viewed on only 13 days', whyNot(page('/a', 500, 0, { days_viewed: 13 }))],
    ['viewed by people on only 6 days', whyNot(page('/a', 0, 500, { days_viewed_by_people: 6 }))],
    ['not in the sitemap', whyNot(page('/a', 500), {}, { isListed: () => false })],
    ['not a plain path', whyNot(page('/a b', 500), {}, { isListed: () => true })],
    ['has job 4, active', whyNot(page('/a', 500), {}, { busy: new Map([['/a', HAS_JOB]]) })],
    [
      'left for a later run: improve.maxJobsPerRun is 5',
      whyNot(page('/a', 500), {}, { room: { count: 0, limit: LIMIT } }),
    ],
  ])('%s', (words, why) => {
    expect(why).toHaveLength(1);
    expect(why[0]).toMatch(words === 'excluded by a glob' ? 'excluded by improve.exclude' : words);
  });

  it('a page that the sitemap lists needs no further proof that it exists', () => {
    const quiet = page('/a', 0, 500, { days_viewed: 2, days_viewed_by_people: 0 });
    expect(flaggedBy([quiet], {}, { isListed: (path: string) => path === '/a' })).toEqual(['/a']);
  });

  it('a left-out page gives its place to the next', () => {
    const pages = [page('/a', 500), page('/b', 400), page('/c', 300)];
    const around = { busy: new Map([['/a', HAS_JOB]]), room: { count: 1, limit: LIMIT } };
    expect(flaggedBy(pages, {}, around)).toEqual(['/b']);
  });
});

describe('one open job per page, and a cooldown', () => {
  const now = new Date('2026-11-18T05:00:00Z');
  const job = (state: string, endedDaysAgo: number | null) =>
    ({
      ...{ id: 1, path: '/a', state },
      ended_at: endedDaysAgo === null ? null : new Date(now.getTime() - endedDaysAgo * 86_400_000),
    }) as Parameters<typeof busyPages>[0][number];

  it.each([
    ['planned', null, true],
    ['submitting', null, true],
    ['active', null, true],
    ['unconfirmed', null, true],
    ['completed', 55, true],
    ['failed', 55, true],
    ['archived', 55, true],
    ['completed', 57, false],
    ['refused', 1, false],
  ])('%s, ended %s days ago: prevents a new job: %s', (state, endedDaysAgo, isBusy) => {
    expect(busyPages([job(state, endedDaysAgo)], 56, now).has('/a')).toBe(isBusy);
  });
});

describe('how many', () => {
  const rules = { ...RULES, cooldownDays: 56, maxJobsPerRun: 5, maxJobsPerWeek: 8 };
  it.each([
    [0, 0, 5, 'improve.maxJobsPerRun is 5'],
    [2, 2, 3, 'improve.maxJobsPerRun is 5'],
    [0, 6, 2, 'improve.maxJobsPerWeek is 8'],
    [0, 9, 0, 'improve.maxJobsPerWeek is 8'],
    [7, 7, 0, 'improve.maxJobsPerRun is 5'],
  ])('%s waiting, %s planned this week: %s more, as %s', (waiting, thisWeek, count, bound) => {
    const { count: left, limit } = roomLeft(rules, waiting, thisWeek);
    expect([left, wordsOf(limit)]).toEqual([count, `left for a later run: ${bound}`]);
  });
});
