import { describe, expect, it } from 'vitest';
import { busyPages, isInReview, rejectedPages, roomFor } from '../../src/agents/plan.js';
import { limitWords, type Reason, reasonWords } from '../../src/agents/reasons.js';
import { selectPages } from '../../src/agents/select.js';
import type { Candidate } from '../../src/agents/ranking.js';
import { addDays, day } from '../../src/day.js';
import { RULES as ALL_RULES } from './reading.js';

const RULES = { ...ALL_RULES, minWeeklyViews: 100 };
type Rules = typeof RULES;
const HAS_JOB: Reason = { code: 'has-job', job: 4, state: 'active' };
const NO_PULL_REQUEST = { pr_link: null, merged_on: null, closed_on: null, merged_into: null };
const FREE = {
  busy: new Map<string, Reason>(),
  rejected: new Map<string, Reason>(),
  variants: [],
  isListed: undefined,
  room: 99,
};

/** A page with the same views in each of eight weeks. */
const page = (path: string, weekly_human: number, weekly_ai = 0, changes: Partial<Candidate> = {}) => ({
  ...{ path, weekly_human, weekly_ai, rank: 1, trend: 0 },
  weeks: Array.from({ length: 8 }, (_, index) => ({
    ...{ week: addDays(day('2026-09-21'), 7 * index), human: weekly_human, ai: weekly_ai },
  })),
  ...{
    days_viewed: 56,
    days_viewed_by_people: 56,
    is_gone: false,
    has_enough: true,
    ...{ lately_days: null, lately_until: null, lately_views: null, lately_usual: null },
    all_pages: 1,
    ...changes,
  },
});

/** The views of the last days. */
const lately = (lately_days: number, lately_views: number, lately_usual: number) => ({
  ...{ lately_days, lately_until: day('2026-11-15'), lately_views, lately_usual },
});

/** Selects from pages in the order of the ranking. */
const selectAll = (pages: Candidate[], ...given: [Rules, Parameters<typeof selectPages>[2]]) =>
  selectPages(
    pages.map((one, index) => ({ ...one, rank: index + 1, all_pages: pages.length })),
    ...given,
  );

const pathsOf = (pages: readonly { readonly path: string }[]) => pages.map(({ path }) => path);
const flaggedBy = (pages: Candidate[], rules: Partial<Rules> = {}, around = {}) =>
  pathsOf(selectAll(pages, { ...RULES, ...rules }, { ...FREE, ...around }).flagged);

const whyNot = (one: Candidate, rules: Partial<Rules> = {}, around = {}) =>
  selectAll([one], { ...RULES, ...rules }, { ...FREE, ...around }).leftOut.map(({ why }) => reasonWords(why));

describe('which pages are flagged', () => {
  const pages = [
    page('/a', 350),
    page('/b', 300, 50),
    page('/c', 200),
    page('/d', 99, 0, { has_enough: false }),
  ];

  it('the first of the ranking; those that wait only for room are up next, in its order', () => {
    const { flagged, next, leftOut, belowMinimum } = selectAll(pages, RULES, { ...FREE, room: 1 });
    expect([flagged, next, leftOut].map(pathsOf)).toEqual([['/a'], ['/b', '/c'], []]);
    expect(belowMinimum).toBe(1);
    const why = next[0] && reasonWords(next[0].why);
    expect(why).toBe(
      '#2 of 4 pages: 350 views in a typical week (300 by people, 50 by AI), steady over eight weeks',
    );
  });

  it.each([
    [0.12, '; the last four weeks are up 12% from the four before'],
    [-0.3, '; the last four weeks are down 30% from the four before'],
    [0.04, ', steady over eight weeks'],
    [null, ''],
  ])('with the rank, the numbers and a trend of %s as the reason', (trend, course) => {
    const [flagged] = selectAll(
      [page('/a', 1200, 300, { trend, weekly_human: 1200.5 })],
      RULES,
      FREE,
    ).flagged;
    expect(flagged && reasonWords(flagged.why)).toBe(
      `#1 of 1 pages: 1,501 views in a typical week (1,201 by people, 300 by AI)${course}`,
    );
    expect(flagged?.evidence).toMatchObject({ weekly_human: 1200.5, trend });
    expect(flagged?.evidence.weeks).toHaveLength(8);
  });

  it('with the views of the last days', () => {
    const [flagged] = selectAll([page('/a', 1200, 300, lately(7, 1340, 1500))], RULES, FREE).flagged;
    expect(flagged && reasonWords(flagged.why)).toMatch(
      /, steady over eight weeks; 1,340 in the seven days to Nov 15, 2026$/,
    );
  });

  it('none with fewer than four whole weeks', () => {
    const young = page('/a', 900);
    const all = [{ ...young, weeks: young.weeks.slice(0, 3) }];
    expect(flaggedBy(all)).toEqual([]);
    const [leftOut] = selectAll(all, RULES, { ...FREE, only: ['/a'] }).leftOut;
    expect(leftOut && reasonWords(leftOut.why)).toBe('the history has fewer than four full weeks');
  });
});

describe('which pages are left out, and why', () => {
  it.each<[string, ...Parameters<typeof whyNot>]>([
    ['excluded (improve.exclude)', page('/changelog/2026/may', 500), { exclude: ['/changelog/**'] }],
    ['excluded (improve.exclude)', page('/openapi.json', 500), { exclude: ['/**/openapi.*'] }],
    ['excluded (improve.exclude)', page('/docs/intro', 500), { exclude: ['/docs/intro.md'] }],
    ['excluded (improve.exclude)', page('/docs/intro', 500), { exclude: ['/docs/*/'] }],
    ['excluded (improve.exclude)', page('/v2/api/openapi.yaml', 500), { exclude: ['/**/openapi.*'] }],
    ['viewed on only 13 days', page('/a', 500, 0, { days_viewed: 13 })],
    ['viewed by people on only 6 days', page('/a', 0, 500, { days_viewed_by_people: 6 })],
    ['not in the sitemap', page('/a', 500), {}, { isListed: () => false }],
    ['not a plain path', page('/a b', 500), {}, { isListed: () => true }],
    ['not a plain path', page('a', 500), {}, { isListed: () => true }],
    ['not a plain path', page(`/${'a'.repeat(200)}`, 500), {}, { isListed: () => true }],
    [
      'fewer than 100 views in a typical week',
      page('/a', 99, 0, { has_enough: false }),
      {},
      { only: ['/a'] },
    ],
    [
      'only 12 views in the two days to Nov 15, 2026 (usually 350)',
      page('/a', 100, 0, { is_gone: true, ...lately(2, 12, 350) }),
    ],
    [
      'no views in the seven days to Nov 15, 2026 (usually 350)',
      page('/a', 100, 0, { is_gone: true, ...lately(7, 0, 350) }),
    ],
    ['has job 4, active', page('/a', 500), {}, { busy: new Map([['/a', HAS_JOB]]) }],
  ])('%s', (words, ...given) => {
    expect(whyNot(...given)).toEqual([expect.stringContaining(words)]);
  });

  it.each([
    ['/a', undefined],
    ['/c', 'fewer than 100 views in a typical week (improve.minWeeklyViews)'],
  ])('%s, named by a person: %s', (path, why) => {
    // Without one that has too few views, as the history is read.
    const pages = [page('/b', 500), page('/a', 300)].map((one) => ({ ...one, weeks: one.weeks.slice(4) }));
    const only = path === '/a' ? [path] : ['/a', path];
    const { flagged, next, leftOut } = selectAll(pages, RULES, { ...FREE, only });
    expect([flagged, next].map(pathsOf)).toEqual([['/a'], []]);
    expect(leftOut.map((one) => reasonWords(one.why))).toEqual(why === undefined ? [] : [why]);
  });

  it('a page that the sitemap lists needs no further proof that it exists', () => {
    const quiet = page('/a', 0, 500, { days_viewed: 2, days_viewed_by_people: 0 });
    expect(flaggedBy([quiet], {}, { isListed: (path: string) => path === '/a' })).toEqual(['/a']);
  });

  it('a page exactly at a limit is within it', () => {
    const atLimit = { days_viewed: 14, days_viewed_by_people: 7, weeks: page('/a', 100).weeks.slice(4) };
    expect(flaggedBy([page('/a', 100, 0, atLimit)])).toEqual(['/a']);
    expect(flaggedBy([page('/a', 100, 0, { ...atLimit, weeks: atLimit.weeks.slice(1) })])).toEqual([]);
    const longest = `/${'a'.repeat(199)}`;
    expect(flaggedBy([page(longest, 500)])).toEqual([longest]);
  });

  it('a rejected page, unless a person names it', () => {
    const why: Reason = { code: 'rejected', job: 3, on: day('2026-11-09') };
    const rejected = new Map([['/a', why]]);
    const chosen = (state: object) => selectAll([page('/a', 500)], RULES, { ...FREE, rejected, ...state });
    expect(chosen({}).leftOut).toMatchObject([{ path: '/a', why }]);
    expect(chosen({ only: ['/a'] }).flagged).toMatchObject([{ path: '/a', despite: why }]);
  });

  it('a left-out page gives its place to the next', () => {
    const pages = [page('/a', 500), page('/b', 400), page('/c', 300)];
    const around = { busy: new Map([['/a', HAS_JOB]]), room: 1 };
    expect(flaggedBy(pages, {}, around)).toEqual(['/b']);
  });
});

describe('one open job per page, and a cooldown', () => {
  const now = new Date('2026-11-18T05:00:00Z');
  const job = (state: string, endedDaysAgo: number | null) =>
    ({
      ...{ id: 1, path: '/a', state, ...NO_PULL_REQUEST },
      planned_at: new Date('2026-09-01T04:00:00Z'),
      ended_at: endedDaysAgo === null ? null : new Date(now.getTime() - endedDaysAgo * 86_400_000),
    }) as Parameters<typeof busyPages>[0][number];

  it.each([
    ['planned', null, true],
    ['sending', null, true],
    ['active', null, true],
    ['unknown', null, true],
    ['completed', 55, true],
    ['archived', 55, true],
    ['completed', 56, false],
    ['failed', 6, true],
    ['failed', 7, false],
    ['failed', 3, true, 4],
    ['failed', 4, false, 4],
    ['refused', 1, false],
  ])('%s, ended %s days ago: prevents a new job: %s', (state, endedDaysAgo, isBusy, cooldownDays = 56) => {
    expect(busyPages([job(state, endedDaysAgo)], { ...RULES, cooldownDays }, now).has('/a')).toBe(isBusy);
  });

  const reviewed = (changes: object) => ({ ...job('completed', 70), pr_link: 'https://…/1', ...changes });

  it('a page whose pull request waits for review gets no other job, however long that takes', () => {
    const [why] = busyPages([reviewed({})], RULES, now).values();
    expect(why && reasonWords(why)).toBe('pull request of job 1 in review since Sep 9, 2026');
    const others = [
      { merged_on: day('2026-09-10') },
      { closed_on: day('2026-09-10') },
      { merged_into: 'staging' },
      { state: 'active' },
    ];
    expect(others.map(reviewed).filter(isInReview)).toEqual([]);
    expect(busyPages([reviewed({ merged_on: day('2026-09-10') })], RULES, now).size).toBe(0);
    expect(busyPages([job('completed', 55)], RULES, now).get('/a')).toEqual({
      code: 'had-job',
      job: 1,
      is_failed: false,
      ended: '2026-09-24',
      until: '2026-11-19',
    });
    const [failed] = busyPages([job('failed', 1)], RULES, now).values();
    expect(failed && reasonWords(failed)).toBe(
      'job 1 failed on Nov 17, 2026; its next one may start on Nov 24, 2026',
    );
  });

  it('a page whose pull request was rejected gets another job only if a person names it', () => {
    const rejected = { ...job('completed', 9), closed_on: day('2026-11-09') };
    expect(busyPages([rejected], RULES, now).size).toBe(0);
    const [why] = rejectedPages([rejected]).values();
    expect(why && reasonWords(why)).toMatch(
      /^rejected on Nov 9, 2026 \(job 1\): it gets another job only if you approve it$/,
    );
    expect(rejectedPages([rejected, { ...job('completed', 60), id: 2 }]).size).toBe(0);
    expect(rejectedPages([rejected, { ...job('refused', 1), id: 2 }]).size).toBe(1);
    expect(rejectedPages([{ ...rejected, merged_on: day('2026-11-10') }]).size).toBe(0);
  });
});

describe('how many', () => {
  const now = new Date('2026-11-18T04:00:00Z');
  const rules = { ...RULES, maxJobsPerWeek: 8 };
  const jobs = (count: number, state: string, submitted_at: Date | null, pr_link: string | null = null) =>
    Array<Parameters<typeof roomFor>[0][number]>(count).fill({
      ...{ state, submitted_at, planned_at: now, ...NO_PULL_REQUEST, pr_link },
    } as Parameters<typeof roomFor>[0][number]);
  const earlier = new Date('2026-11-15T23:59:59.999Z');
  it.each([
    [0, 0, 0, 8, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [2, 0, 0, 6, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [0, 6, 0, 2, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [2, 4, 0, 2, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [0, 3, 2, 5, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [0, 9, 0, 0, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [9, 0, 0, 0, 'at most 8 jobs a week (improve.maxJobsPerWeek)'],
    [0, 0, 9, 1, 'at most 10 open pull requests (improve.maxOpenPullRequests)'],
    [2, 0, 7, 1, 'at most 10 open pull requests (improve.maxOpenPullRequests)'],
    [0, 0, 12, 0, 'at most 10 open pull requests (improve.maxOpenPullRequests)'],
  ])('%s waiting, %s active, %s in review: %s more this week: %s', (waiting, active, review, count, why) => {
    const all = [
      ...jobs(waiting, 'planned', null),
      ...jobs(active, 'active', now),
      ...jobs(review, 'completed', earlier, 'https://code.example.com/1'),
      // These take no room.
      ...[...jobs(9, 'failed', earlier), ...jobs(9, 'refused', now)],
    ];
    const { toPlan, plannedThisWeek } = roomFor(all, rules, now);
    expect([toPlan.count, limitWords(toPlan)]).toEqual([count, why]);
    expect(plannedThisWeek).toBe(waiting + active);
  });
});
