import { addDays, addHours } from 'date-fns';
import { beforeAll, describe, expect, it } from 'vitest';
import { recordChoices } from '../../src/steps/improve.js';
import { changeJob, planJob } from '../../src/agents/jobs.js';
import { busyPages, type ImprovePlan } from '../../src/agents/plan.js';
import { readRanking } from '../../src/agents/ranking.js';
import { reasonWords } from '../../src/agents/reasons.js';
import type { Selection } from '../../src/agents/select.js';
import { day } from '../../src/day.js';
import { improvePlanLines } from '../../src/print/improve.js';
import { readChoices } from '../../src/state/decisions.js';
import { type Job, readJobs } from '../../src/state/jobs.js';
import { emptyState } from '../../src/state/open.js';
import type { State } from '../../src/state/state.js';
import { newStore } from '../open-history.js';
import { emptyHistory, type TestHistory } from '../reports/history.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { EVIDENCE, jobFor, planFrom, readingSql, RULES, steadyPages, storeReading } from './reading.js';

const AT = { now: NOW };

/** Plans a job for a page. */
const planned = (state: State, path: string, now: Date) =>
  state.transaction(() => planJob(state, jobFor(path, now)));

/** The plan as `readership improve` prints it. */
function linesOf(plan: ImprovePlan): string[] {
  return improvePlanLines({ name: 'Docs', plan, rules: RULES, width: 80 });
}

describe('the evidence for a page, from the history', () => {
  let history: TestHistory;
  let stores: Parameters<typeof planFrom>[0];
  beforeAll(async () => {
    history = await emptyHistory();
    stores = { state: emptyState(), reader: history.reader };
    const pages = [
      { path: '/steady', human: 100, ai: 50 },
      { path: '/ai', human: 10, ai: 120 },
    ];
    await history.run(readingSql(pages));
    // A bot of one day, a spike of one week, a page that got a new address, one that grew, and another project's.
    await history.run(`
      INSERT INTO page_views
      SELECT 'prj_sandbox', day, '/moved', '/moved', if(day < '2026-11-09', 40, 2), 0, if(day < '2026-11-09', 40, 2) FROM days;
      UPDATE page_views SET human = human + 9000, total = total + 9000 WHERE path = '/steady' AND day = '2026-09-23';
      INSERT INTO page_views SELECT 'prj_sandbox', day, '/spike', '/spike', 9000, 0, 9000 FROM days WHERE day >= '2026-11-09';
      INSERT INTO page_views SELECT 'prj_sandbox', day, '/grew', '/grew', 60, 0, 60 FROM days WHERE day >= '2026-09-21';
      INSERT INTO page_views SELECT 'prj_sandbox', day, '/grew', '/grew', 60, 0, 60 FROM days WHERE day >= '2026-10-19';
      INSERT INTO page_views SELECT 'prj_other', day, '/other', '/other', 5000, 0, 5000 FROM days;`);
  });

  it('is sustained and ranked by its typical week: neither a spike nor a bot of one day counts, nor a page that lost its views', async () => {
    const { flagged, weeks } = await planFrom(stores, 'prj_sandbox', RULES, AT);
    const found = flagged.map(({ path, why, evidence: { weekly_human, weekly_ai, trend } }) =>
      [path, 'rank' in why && why.rank, weekly_human, weekly_ai, trend].join(' '),
    );
    expect(found).toEqual(['/steady 1 700 350 0', '/ai 2 70 840 0', '/grew 3 630 0 1']);
    expect(weeks).toBe(8);
    expect(flagged[0]?.evidence.weeks).toHaveLength(8);
    expect(flagged[0]?.evidence.weeks[0]).toEqual({ week: '2026-09-21', human: 9700, ai: 350 });
    const { leftOut } = await planFrom(stores, 'prj_sandbox', RULES, { ...AT, only: ['/moved'] });
    expect(leftOut.map(({ why }) => why)).toEqual([
      { code: 'gone', lately: { days: 7, until: '2026-11-15', views: 14, usual: 280 } },
    ]);
  });

  it('is read only for pages with enough views, although a person can name any', async () => {
    const rules = { ...RULES, minWeeklyViews: 1_000 };
    const { candidates } = await readRanking(history.reader, { id: 'prj_sandbox' }, rules, {
      sitemap: undefined,
      now: NOW,
    });
    expect(candidates.map(({ path }) => path)).toEqual(['/steady']);
    const only = ['/grew', '/other', '/early'];
    await history.run(
      "INSERT INTO page_views SELECT 'prj_sandbox', min(day) - 1, '/early', '/early', 9, 0, 9 FROM days",
    );
    const plan = await planFrom(stores, 'prj_sandbox', rules, { ...AT, only });
    const few = 'fewer than 1,000 views in a typical week (improve.minWeeklyViews)';
    expect(plan.leftOut.map(({ why }) => reasonWords(why))).toEqual([few, few, few]);
    expect(plan).toMatchObject({ belowMinimum: 4, weeks: 8 });
  });

  it('has no trend across a break, which the notes can limit to some pages', async () => {
    const noteBreak = (date: string, path: string, project = 'prj_sandbox') =>
      history.run(
        `INSERT INTO notes VALUES ('${project}', '${date}', 'counted differently', '${path}', true)`,
      );
    const trends = async () => {
      const { flagged } = await planFrom(stores, 'prj_sandbox', RULES, AT);
      return flagged.map(({ evidence }) => evidence.trend);
    };
    const before = await trends();
    // A break before the first day of the weeks or after their last one does not divide them, nor does another project's.
    await noteBreak('2026-10-19', '*', 'prj_other');
    await noteBreak('2026-09-21', '*');
    await noteBreak('2026-11-16', '*');
    expect(await trends()).toEqual(before);
    await noteBreak('2026-11-15', '/gr*');
    expect(await trends()).toEqual([0, 0, null]);
    await noteBreak('2026-09-22', '*');
    expect(await trends()).toEqual([null, null, null]);
  });

  it('counts the days on which people viewed a page, not those on which only AI did', async () => {
    const read = await emptyHistory();
    await read.run(readingSql([{ path: '/for-ai', human: 70, ai: 50 }]));
    const viewedByPeopleUntil = (last: string) =>
      read.run(`UPDATE page_views SET human = 0, total = ai WHERE day > '${last}'`);
    const stores = { state: emptyState(), reader: read.reader };
    // The first of the eight weeks begins on Sep 21.
    await viewedByPeopleUntil('2026-09-27');
    expect((await planFrom(stores, 'prj_sandbox', RULES, AT)).flagged).toHaveLength(1);
    await viewedByPeopleUntil('2026-09-26');
    const { leftOut } = await planFrom(stores, 'prj_sandbox', RULES, AT);
    expect(leftOut.map(({ why }) => why)).toEqual([{ code: 'few-days-by-people', days: 6 }]);
  });

  it('counts weeks without views as 0, takes the middle of two weeks, and ranks pages with the same views by path', async () => {
    const read = await emptyHistory();
    await read.run(readingSql(['/b', '/a', '/half'].map((path) => ({ path, human: 100, ai: 0 }))));
    // Four of the eight weeks, and the first one less than the others.
    await read.run(`
      DELETE FROM page_views WHERE path = '/half' AND day < '2026-10-19';
      UPDATE page_views SET human = 60, total = 60 WHERE path = '/half' AND day < '2026-10-26'`);
    const rules = { ...RULES, minWeeklyViews: 0 };
    const { flagged } = await planFrom(
      { state: emptyState(), reader: read.reader },
      'prj_sandbox',
      rules,
      AT,
    );
    const found = flagged.map(({ path, evidence }) => [path, evidence.weekly_human]);
    expect(found).toEqual([
      ['/a', 700],
      ['/b', 700],
      ['/half', 210],
    ]);
  });

  it('uses whole weeks only: neither the current one nor one with a missing day', async () => {
    const gappy = await emptyHistory();
    await gappy.run(readingSql(steadyPages(1), { first: '2026-10-12', last: '2026-11-17' }));
    await gappy.run("DELETE FROM days WHERE day = '2026-10-28'");
    const { weeks, flagged } = await planFrom(
      { state: emptyState(), reader: gappy.reader },
      'prj_sandbox',
      RULES,
      AT,
    );
    expect([weeks, flagged.length]).toEqual([4, 1]);
  });
});

it('a stored choice keeps its time while the decision is the same', async () => {
  const history = await newStore();
  const state = emptyState();
  const stores = { reader: history, state };
  const record = (selection: Selection, now: Date) =>
    state.transaction(() => {
      recordChoices(state, 'prj_sandbox', selection, now);
    });
  await storeReading(history, steadyPages(3));
  const choose = async (rules: typeof RULES, now = NOW) => {
    const plan = await planFrom(stores, 'prj_sandbox', rules, AT);
    await record(plan, now);
  };
  const times = () =>
    readChoices(state, 'prj_sandbox')
      .toSorted((one, two) => (one.path < two.path ? -1 : 1))
      .map(({ chosen_at }) => chosen_at);
  const later = addDays(NOW, 9);
  await choose(RULES);
  await choose(RULES, later);
  expect(times()).toEqual([NOW, NOW, NOW]);
  await choose({ ...RULES, exclude: ['/guides/page-1'] }, later);
  expect(times()).toEqual([later, NOW, NOW]);
  const plan = await planFrom(stores, 'prj_sandbox', RULES, AT);
  const reject = async (job: number, now: Date) => {
    const why = { code: 'rejected', job, on: day('2026-11-09') } as const;
    const page = { path: '/guides/page-1', why, evidence: EVIDENCE };
    await record({ ...plan, flagged: [], leftOut: [page] }, now);
    return times();
  };
  expect(await reject(1, NOW)).toEqual([NOW]);
  expect(await reject(1, later)).toEqual([NOW]);
  // Rejected again, with another job.
  expect(await reject(2, later)).toEqual([later]);
  // The page got a job in between.
  await record(plan, NOW);
  await planned(state, '/guides/page-2', addHours(NOW, 1));
  await record(plan, later);
  expect(times()).toEqual([NOW, later, NOW]);
});

it('the views of people and of AI are rounded so that they add up', async () => {
  const history = await newStore();
  await storeReading(history, steadyPages(6));
  const plan = await planFrom({ state: emptyState(), reader: history }, 'prj_sandbox', RULES, AT);
  const halves = { weekly_human: 885.5, weekly_ai: 1517.5 };
  const page = plan.next[0] ?? expect.fail();
  const lines = linesOf({ ...plan, next: [{ ...page, evidence: { ...page.evidence, ...halves } }] });
  expect(lines.join('\n')).toMatch(/#6 +\/guides\/page-6 +2,404 +886 +1,518 /);
});

it('what waits only for room is up next, and not left out', async () => {
  const history = await newStore();
  await storeReading(history, steadyPages(12));
  const plan = await planFrom({ state: emptyState(), reader: history }, 'prj_sandbox', RULES, AT);
  const lines = linesOf(plan);
  expect(lines[0]).toBe('Docs: 5 pages would get a job now');
  const text = lines.join('\n');
  expect(text).toMatch(
    /Up next, with at most 5 jobs a week \(improve\.maxJobsPerWeek\):\n.+\n +#6 +\/guides\/page-6 [^]*\n {2}2 more pages: --verbose/,
  );
  expect(text).not.toContain('left out');
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
});

it.each([
  ['2026-11-17T22:00:00Z', 'since Nov 17, 2026', 0],
  ['2026-11-16T22:00:00Z', 'since Nov 16, 2026', 0],
  ['2026-11-10T00:00:00Z', 'since Nov 10, 2026', 1],
])('a pull request of %s waits for review %s', async (endedAt, since, named) => {
  const state = emptyState();
  await planned(state, '/late', new Date(endedAt));
  const completed =
    "UPDATE jobs SET state = 'completed', pr_link = 'https://code.example.com/1', ended_at = $endedAt";
  await state.transaction(() => state.run(completed, { endedAt: new Date(endedAt) }));
  await planned(state, '/next', NOW);
  const plan = await planFrom(
    { state, reader: await newStore() },
    'prj_sandbox',
    { ...RULES, maxOpenPullRequests: 1 },
    AT,
  );
  const lines = linesOf(plan);
  expect(plan.weeks).toBe(0);
  expect(lines).toContain(`  1 pull request waiting for review ${since}`);
  const held = 'waits for room: at most 1 open pull request (improve.maxOpenPullRequests)';
  expect(lines).toContain(`  /next  planned earlier as job 2, ${held}`);
  expect(lines.join('\n')).not.toContain('To create the jobs');
  expect(lines.filter((line) => line.includes('/late'))).toHaveLength(named);
  // It still counts as open, but nobody knows whether it waits for review.
  await state.transaction(() =>
    state.run("INSERT INTO pull_requests VALUES (1, $at, $at, NULL, NULL, 'not found')", { at: NOW }),
  );
  const unclear = linesOf(
    await planFrom(
      { state, reader: await newStore() },
      'prj_sandbox',
      { ...RULES, maxOpenPullRequests: 1 },
      AT,
    ),
  );
  expect(unclear).toContain('  1 pull request to check, which could not be looked up: readership status');
  expect(unclear).toContain(`  /next  planned earlier as job 2, ${held}`);
  expect(unclear.join('\n')).not.toContain('waiting for review');
});

describe('the jobs of a week', () => {
  it('are those planned from its first moment to its last', async () => {
    const history = await newStore();
    const state = emptyState();
    const stores = { state, reader: history };
    await storeReading(history, steadyPages(1));
    const times = ['15T23:59:59.999', '16T00:00:00.000', '22T23:59:59.999', '23T00:00:00.000'];
    for (const time of times) await planned(state, `/${time}`, new Date(`2026-11-${time}Z`));
    const week = () => planFrom(stores, 'prj_sandbox', RULES, AT);
    // Those that wait will be sent in this week.
    expect((await week()).plannedThisWeek).toBe(4);
    for (const job of readJobs(state, 'prj_sandbox'))
      await state.transaction(() =>
        changeJob(state, job, { event: 'submit', now: job.planned_at, cause: '' }),
      );
    expect((await week()).plannedThisWeek).toBe(2);
  });

  it.each<[planned: number, ended: number, review: Partial<Job>, isBusy: boolean]>([
    [-5, -1, {}, true],
    [-90, -57, {}, false],
    [-90, 0, { ended_at: addHours(NOW, 1) }, true],
    [-90, 400, {}, false],
    [-5, 400, {}, true],
    [400, 401, {}, false],
    [-90, -80, { merged_on: day('2026-11-17') }, false],
    [-90, -80, { state: 'active' }, true],
    [400, 401, { state: 'active' }, true],
  ])(
    'and cooldowns are not affected by times of a clock that was ahead: %i, %i, %j',
    (planned, ended, review, isBusy) => {
      const times = { planned_at: addDays(NOW, planned), ended_at: addDays(NOW, ended) };
      const pullRequest = { pr_link: null, merged_on: null, closed_on: null, merged_into: null };
      const job = { id: 1, path: '/a', state: 'completed', ...pullRequest, ...times, ...review } as Job;
      expect(busyPages([job], RULES, NOW).has('/a')).toBe(isBusy);
    },
  );
});
