import { describe, expect, it } from 'vitest';
import { busyPages, reservedPages } from '../../src/agents/plan.js';
import { NO_EVIDENCE, type Reason, reasonWords } from '../../src/agents/reasons.js';
import { isInReview, roomFor } from '../../src/agents/room.js';
import { type Candidate, selectPages, type SelectionRules } from '../../src/agents/select.js';
import { addDays, day } from '../../src/day.js';

const RULES: SelectionRules = {
  ...{ minWeeklyViews: 100, readingShare: 1, exclude: [] },
  ...{ mode: 'plan', experiment: 'pairs' },
};
const LIMIT: Reason = { code: 'limit', setting: 'maxJobsPerRun', limit: 5 };
const HAS_JOB: Reason = { code: 'has-job', job: 4, state: 'active' };
const FREE = {
  busy: new Map<string, Reason>(),
  reserved: new Map<string, Reason>(),
  isListed: undefined,
  room: { count: 99, limit: LIMIT },
};

/** A page with the same views in each of eight weeks. */
const page = (path: string, weekly_human: number, weekly_ai = 0, changes: Partial<Candidate> = {}) => ({
  ...{ path, weekly_human, weekly_ai, human_rank: 1, ai_rank: 1, ai_per_human: 0, trend: 0 },
  weeks: Array.from({ length: 8 }, (_, index) => ({
    ...{ week: addDays(day('2026-09-21'), 7 * index), human: weekly_human, ai: weekly_ai },
  })),
  ...{
    days_viewed: 56,
    days_viewed_by_people: 56,
    leaving: null,
    is_gone: false,
    all_pages: 1,
    all_views: 1,
    ...changes,
  },
});

/** Selects from pages of which none was left out before. */
const selectAll = (pages: Candidate[], ...given: [SelectionRules, Parameters<typeof selectPages>[2]]) => {
  const all_views = pages.reduce((sum, one) => sum + one.weekly_human + one.weekly_ai, 0);
  const all = pages.map((one) => ({ ...one, all_pages: pages.length, all_views }));
  return selectPages(all, ...given);
};

const flaggedBy = (pages: Candidate[], rules: Partial<SelectionRules> = {}, around = {}) =>
  selectAll(pages, { ...RULES, ...rules }, { ...FREE, ...around }).flagged.map(({ path }) => path);

const whyNot = (one: Candidate, rules: Partial<SelectionRules> = {}, around = {}) =>
  selectAll([one], { ...RULES, ...rules }, { ...FREE, ...around }).leftOut.map(({ why }) => reasonWords(why));

describe('which pages are recommended', () => {
  it('those with the most sustained traffic, best first, in a stable order', () => {
    const pages = [page('/c', 200), page('/b', 300, 50), page('/a', 350), page('/d', 99)];
    for (const given of [pages, pages.toReversed()]) expect(flaggedBy(given)).toEqual(['/a', '/b', '/c']);
  });

  it('those that together have the configured share of all views, and no more', () => {
    const pages = [page('/a', 500), page('/b', 300), page('/c', 150), page('/d', 50)];
    const { flagged, beyondShare, belowFloor } = selectAll(pages, { ...RULES, readingShare: 0.8 }, FREE);
    expect(flagged.map(({ path }) => path)).toEqual(['/a', '/b']);
    expect({ beyondShare, belowFloor }).toEqual({ beyondShare: 1, belowFloor: 1 });
  });

  it('with a reason and the numbers behind it', () => {
    const changes = { human_rank: 2, ai_rank: 7, ai_per_human: 0.25, trend: 0.12 };
    const [flagged] = selectAll([page('/a', 1200, 300, changes)], RULES, FREE).flagged;
    expect(flagged && reasonWords(flagged.why)).toBe(
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
    const { flagged, beyondShare } = selectAll(pages, { ...RULES, readingShare: 0.5 }, FREE);
    expect(flagged.map(({ path }) => path)).toEqual(['/c', '/a']);
    expect(flagged[0] && reasonWords(flagged[0].why)).toMatch(
      /^losing people but not AI: human views −35% and AI views \+3% over eight weeks, relative to the median page; #3 in/,
    );
    expect(beyondShare).toBe(1);
  });

  it('none with fewer than four whole weeks', () => {
    const young = page('/a', 900);
    const all = [{ ...young, weeks: young.weeks.slice(0, 3) }];
    expect(flaggedBy(all)).toEqual([]);
    const named = { only: ['/a'], viewed: new Map([['/a', NO_EVIDENCE]]) };
    const [leftOut] = selectAll(all, RULES, { ...FREE, ...named }).leftOut;
    expect(leftOut && reasonWords(leftOut.why)).toBe('the history has only 3 full weeks; 4 are needed');
  });
});

describe('which pages are left out, and why', () => {
  it.each<[string, ...Parameters<typeof whyNot>]>([
    ['excluded by improve.exclude', page('/changelog/2026/may', 500), { exclude: ['/changelog/**'] }],
    ['excluded by improve.exclude', page('/openapi.json', 500), { exclude: ['/**/openapi.*'] }],
    ['excluded by improve.exclude', page('/v2/api/openapi.yaml', 500), { exclude: ['/**/openapi.*'] }],
    ['viewed on only 13 days', page('/a', 500, 0, { days_viewed: 13 })],
    ['viewed by people on only 6 days', page('/a', 0, 500, { days_viewed_by_people: 6 })],
    ['not in the sitemap', page('/a', 500), {}, { isListed: () => false }],
    ['not a plain path', page('/a b', 500), {}, { isListed: () => true }],
    ['not a plain path', page('a', 500), {}, { isListed: () => true }],
    ['not a plain path', page(`/${'a'.repeat(200)}`, 500), {}, { isListed: () => true }],
    ['fewer than 100 views a week', page('/a', 99), {}, { only: ['/a'] }],
    [
      'lost more than three quarters of its usual views',
      page('/a', 100, 0, { is_gone: true }),
      {},
      { only: ['/a'] },
    ],
    ['has job 4, active', page('/a', 500), {}, { busy: new Map([['/a', HAS_JOB]]) }],
    ['improve.maxJobsPerRun is 5', page('/a', 500), {}, { room: { count: 0, limit: LIMIT } }],
  ])('%s', (words, ...given) => {
    expect(whyNot(...given)).toEqual([expect.stringContaining(words)]);
  });

  it.each([
    ['/a', undefined],
    ['/b', 'not among the pages that make up 30.0% of all views (improve.readingShare)'],
    ['/c', 'fewer than 100 views a week (improve.minWeeklyViews)'],
    ['/never', 'not viewed in the last eight full weeks'],
  ])('%s, named by a person: %s', (path, why) => {
    // Without one that has too few views, as the history is read.
    const pages = [page('/a', 500), page('/b', 300)].map((one) => ({ ...one, weeks: one.weeks.slice(4) }));
    const only = path === '/a' ? [path] : ['/a', path];
    const state = { ...FREE, only, viewed: new Map(['/a', '/b', '/c'].map((path) => [path, NO_EVIDENCE])) };
    const { flagged, leftOut } = selectAll(pages, { ...RULES, readingShare: 0.3 }, state);
    expect(flagged.map((one) => one.path)).toEqual(['/a']);
    expect(leftOut.map((one) => reasonWords(one.why))).toEqual(why === undefined ? [] : [why]);
  });

  it('a page that the sitemap lists needs no further proof that it exists', () => {
    const quiet = page('/a', 0, 500, { days_viewed: 2, days_viewed_by_people: 0 });
    expect(flaggedBy([quiet], {}, { isListed: (path: string) => path === '/a' })).toEqual(['/a']);
  });

  it('a page exactly at a limit is within it', () => {
    const atLimit = { days_viewed: 14, days_viewed_by_people: 7, weeks: page('/a', 100).weeks.slice(4) };
    expect(flaggedBy([page('/a', 100, 0, atLimit)])).toEqual(['/a']);
    expect(flaggedBy([page('/a', 99, 0, atLimit)])).toEqual([]);
    expect(flaggedBy([page('/a', 100, 0, { ...atLimit, weeks: atLimit.weeks.slice(1) })])).toEqual([]);
    expect(flaggedBy([page('/a', 0, 0)], { minWeeklyViews: 0 })).toEqual([]);
    const longest = `/${'a'.repeat(199)}`;
    expect(flaggedBy([page(longest, 500)])).toEqual([longest]);
  });

  it('a left-out page gives its place to the next', () => {
    const pages = [page('/a', 500), page('/b', 400), page('/c', 300)];
    const around = { busy: new Map([['/a', HAS_JOB]]), room: { count: 1, limit: LIMIT } };
    expect(flaggedBy(pages, {}, around)).toEqual(['/b']);
  });
});

describe('an experiment', () => {
  const pages = [500, 490, 400, 395, 300, 290].map((views) => page(`/${views}`, views));
  const around = { room: { count: 2, limit: LIMIT } };
  const chosen = (rules: Partial<SelectionRules>, state: object = {}) =>
    selectAll(pages, { ...RULES, mode: 'apply', ...rules }, { ...FREE, ...around, ...state });
  const TWINS = [
    ['/490', '/500'],
    ['/395', '/400'],
  ];

  it('draws one page of each pair; the others are left out, and as many pages are flagged as without it', () => {
    const drawn = new Set<string>();
    for (const seed of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      const { flagged, leftOut, pairs } = chosen({}, { seed });
      expect(pairs.map(({ treated, heldOut }) => [treated, heldOut].sort())).toEqual(TWINS);
      expect(flagged.map(({ path }) => path)).toEqual(pairs.map(({ treated }) => treated));
      expect(leftOut).toHaveLength(4);
      drawn.add(flagged.map(({ path }) => path).join());
    }
    expect(drawn.size).toBeGreaterThan(1);
  });

  it('needs exactly twice as many pages as jobs are allowed', () => {
    const allowed = (count: number) => ({ room: { count, limit: LIMIT }, seed: 'a' });
    expect(chosen({}, allowed(3)).pairs).toHaveLength(3);
    expect(chosen({}, allowed(4)).pairs).toEqual([]);
  });

  it('shows both pages of each pair before the draw', () => {
    expect(chosen({}).flagged.map(({ path }) => path)).toEqual(['/500', '/490', '/400', '/395']);
  });

  it.each([
    ['mode is plan', { mode: 'plan' }, {}],
    ['it is off', { experiment: 'off' }, {}],
    ['fewer than twice as many pages qualify', {}, { room: { count: 4, limit: LIMIT } }],
    ['a person names the pages', {}, { only: ['/500', '/490', '/400', '/395', '/300'] }],
  ] as const)('is not made if %s', (_, rules, state) => {
    const { flagged, pairs } = chosen(rules, { seed: 'a', ...state });
    expect(pairs).toEqual([]);
    expect(flagged.map(({ path }) => path).slice(0, 2)).toEqual(['/500', '/490']);
  });

  it('leaves out reserved pages, unless a person names them', () => {
    const why: Reason = { code: 'rejected', job: 3, on: day('2026-11-09') };
    const reserved = new Map([['/500', why]]);
    expect(chosen({}, { reserved }).leftOut[0]).toMatchObject({ path: '/500', why });
    expect(chosen({}, { reserved, only: ['/500'] }).flagged).toMatchObject([{ path: '/500', despite: why }]);
  });
});

describe('one open job per page, and a cooldown', () => {
  const now = new Date('2026-11-18T05:00:00Z');
  const job = (state: string, endedDaysAgo: number | null) =>
    ({
      ...{ id: 1, path: '/a', state, pr_link: null, merged_on: null, closed_on: null, held_out: null },
      planned_at: new Date('2026-09-01T04:00:00Z'),
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
    ['completed', 56, false],
    ['refused', 1, false],
  ])('%s, ended %s days ago: prevents a new job: %s', (state, endedDaysAgo, isBusy) => {
    expect(busyPages([job(state, endedDaysAgo)], 56, now).has('/a')).toBe(isBusy);
  });

  const reviewed = (changes: object) => ({ ...job('completed', 70), pr_link: 'https://…/1', ...changes });

  it('a page whose pull request waits for review gets no other job, however long that takes', () => {
    const [why] = busyPages([reviewed({})], 56, now).values();
    expect(why && reasonWords(why)).toBe('pull request of job 1 in review since Sep 9, 2026');
    const others = [{ merged_on: day('2026-09-10') }, { closed_on: day('2026-09-10') }, { state: 'active' }];
    expect(others.map(reviewed).filter(isInReview)).toEqual([]);
    expect(busyPages([reviewed({ merged_on: day('2026-09-10') })], 56, now).size).toBe(0);
    expect(busyPages([job('completed', 55)], 56, now).get('/a')).toEqual({
      code: 'had-job',
      job: 1,
      ended: '2026-09-24',
      cooldown_days: 56,
    });
  });

  it('a page whose pull request was rejected gets another job only if a person names it', () => {
    const rejected = { ...job('completed', 9), closed_on: day('2026-11-09') };
    expect(busyPages([rejected], 56, now).size).toBe(0);
    const [why] = reservedPages([rejected], now).values();
    expect(why && reasonWords(why)).toMatch(
      /^rejected on Nov 9, 2026 \(job 1\): it gets another job only if you propose it again$/,
    );
    expect(reservedPages([rejected, { ...job('completed', 60), id: 2 }], now).size).toBe(0);
    expect(reservedPages([rejected, { ...job('refused', 1), id: 2 }], now).size).toBe(1);
    expect(reservedPages([{ ...rejected, merged_on: day('2026-11-10') }], now).size).toBe(0);
  });

  it.each([
    ['while the job is active', job('active', null), 'eight weeks after the review'],
    ['while its pull request is open', reviewed({}), 'eight weeks after the review'],
    ['for eight weeks after the merge', reviewed({ merged_on: day('2026-09-24') }), 'Nov 19, 2026'],
    ['and no longer', reviewed({ merged_on: day('2026-09-23') }), undefined],
    ['from the day of the merge', reviewed({ merged_on: day('2026-11-18') }), 'Jan 13, 2027'],
    ['from the draw', { ...job('active', null), planned_at: now }, 'eight weeks after the review'],
    ['for eight weeks after it was closed', reviewed({ closed_on: day('2026-09-24') }), 'Nov 19, 2026'],
    ['for eight weeks after a failure', job('failed', 55), 'Nov 19, 2026'],
    ['not if the platform refused the job', job('refused', 1), undefined],
    ['for half a year at most', reviewed({ planned_at: new Date('2026-05-19T04:00:00Z') }), undefined],
  ])('the twin of a page with a job is held out %s', (_, treated, until) => {
    const why = reservedPages([{ ...treated, held_out: '/b' }], now).get('/b');
    expect(why && reasonWords(why)).toEqual(
      until && expect.stringMatching(new RegExp(`^held out until ${until}: on .+, chance gave job 1 to /a$`)),
    );
  });

  it('a held-out page that a person chose leaves its pair', () => {
    const treated = { ...reviewed({}), held_out: '/b' };
    expect(reservedPages([treated, { ...job('active', null), id: 2, path: '/b' }], now).size).toBe(0);
  });
});

describe('how many', () => {
  const now = new Date('2026-11-18T04:00:00Z');
  const rules = { maxJobsPerRun: 5, maxJobsPerWeek: 8, maxOpenPullRequests: 10 };
  const jobs = (count: number, state: string, submitted_at: Date | null, pr_link: string | null = null) =>
    Array<Parameters<typeof roomFor>[0][number]>(count).fill({
      ...{ state, submitted_at, planned_at: now, pr_link, merged_on: null, closed_on: null },
    } as Parameters<typeof roomFor>[0][number]);
  const earlier = new Date('2026-11-15T23:59:59.999Z');
  it.each([
    [0, 0, 0, 5, 'improve.maxJobsPerRun is 5'],
    [2, 0, 0, 3, 'improve.maxJobsPerRun is 5'],
    [0, 6, 0, 2, 'improve.maxJobsPerWeek is 8'],
    [2, 4, 0, 2, 'improve.maxJobsPerWeek is 8'],
    [0, 3, 2, 5, 'improve.maxJobsPerRun is 5'],
    [0, 9, 0, 0, 'improve.maxJobsPerWeek is 8'],
    [7, 0, 0, 0, 'improve.maxJobsPerRun is 5'],
    [0, 0, 9, 1, 'improve.maxOpenPullRequests is 10'],
    [2, 0, 7, 1, 'improve.maxOpenPullRequests is 10'],
    [0, 0, 12, 0, 'improve.maxOpenPullRequests is 10'],
  ])('%s waiting, %s active, %s in review: %s more this week: %s', (waiting, active, review, count, why) => {
    const all = [
      ...jobs(waiting, 'planned', null),
      ...jobs(active, 'active', now),
      ...jobs(review, 'completed', earlier, 'https://code.example.com/1'),
      // These take no room.
      ...[...jobs(9, 'failed', earlier), ...jobs(9, 'refused', now)],
    ];
    const { toPlan, plannedThisWeek } = roomFor(all, rules, now);
    expect([toPlan.count, reasonWords(toPlan.limit)]).toEqual([count, `left for a later run: ${why}`]);
    expect(plannedThisWeek).toBe(waiting + active);
  });
});
