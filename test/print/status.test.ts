import { describe, expect, it, test } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { day } from '../../src/day.js';
import { factLines, projectFacts } from '../../src/print/project-facts.js';
import { needsOf, operationsFacts } from '../../src/print/status.js';
import type { OperationsStatus, ProjectStatus } from '../../src/service/status.js';
import type { LastRun } from '../../src/state/runs.js';
import { colorsOf } from '../../src/terminal/output.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const at = (time: string) => new Date(`2026-11-${time}Z`);

/** A project of which yesterday is stored, and everything is as it should be. */
const well: ProjectStatus = {
  project: 'prj_1',
  name: 'Acme Docs',
  keyProblem: null,
  historyFrom: day('2026-11-01'),
  firstDay: day('2026-11-01'),
  lastDay: day('2026-11-17'),
  daysStored: 17,
  gaps: [],
  isYesterdayStored: true,
  provisional: [],
  inconsistent: [],
  failed: [],
  stuck: [],
  final: 17,
  settling: { restated_days: 0, oldest_change_days: null, median_change_days: 0 },
  settleDays: 3,
  pageSize: 250,
  pageSizeUntil: null,
  disagreement: null,
  keptFrom: null,
  keptFromUntil: null,
  recommendedSettleDays: null,
  firstLoadAt: at('17T02:15:00'),
  verifiedAt: null,
  requests: { usedThisHour: 4, perHour: 'unlimited', learnedPerHour: null, pausedUntil: null, left: 0 },
};

const quiet: OperationsStatus = {
  writtenAt: at('18T02:15:00'),
  diskFreeBytes: 3 * 2 ** 30,
  readOnlyDisk: null,
  sendsFrom: undefined,
  stateProblem: null,
  datedInFuture: [],
  pullRequestProblems: [],
  runs: [],
  outages: [],
  jobs: {},
  plannedMessages: 0,
  unknownJobs: [],
  lateJobs: [],
  unknownMessages: [],
  unknownDeliveries: [],
  failedDeliveries: [],
  writtenDeliveries: [],
  waitingDeliveries: [],
};

/** The last run of a step: the export of last night, unless it is said otherwise. */
const lastRun = (changed: Partial<LastRun>): LastRun => ({
  step: 'export',
  started_at: at('18T02:15:00'),
  outcome: 'done',
  resume_at: null,
  summary: null,
  done_at: null,
  failures: 0,
  ...changed,
});

const lines = (facts: Parameters<typeof factLines>[0]) =>
  factLines(facts, colorsOf()).map((line) => line.trim().replaceAll(/ {2,}/g, '  '));

describe('the facts about a project', () => {
  it('are how far its history goes, and the requests, if all is well', () => {
    expect(lines(projectFacts(well, NOW))).toEqual([
      'history  Nov 1 – 17, 2026, 17 days',
      'requests  4 used in the last hour',
    ]);
  });

  const paused = { ...well.requests, pausedUntil: at('18T06:00:00'), left: 12 };
  test.each<[what: string, Partial<ProjectStatus>, line: string]>([
    ['nothing loaded', { firstDay: null }, 'history  nothing is loaded yet: readership export'],
    ['one missing day', { gaps: [day('2026-11-05')] }, 'loading  1 day left'],
    [
      'yesterday, also as the only missing day',
      { isYesterdayStored: false, gaps: [day('2026-11-17')] },
      'yesterday  not loaded yet: readership export',
    ],
    [
      'days that do not add up',
      { inconsistent: [day('2026-11-03'), day('2026-11-04')] },
      'inconsistent  2 days: Nov 3 – 4; read again the next night',
    ],
    [
      'days that have not added up for nights',
      {
        inconsistent: [day('2026-11-03')],
        stuck: [{ day: day('2026-11-03'), why: '3 views more', readAgain: day('2026-11-25') }],
      },
      "inconsistent  1 day: Nov 3; ask the platform's operators",
    ],
    ['a failed day', { failed: [day('2026-11-03')] }, 'failed  1 day: Nov 3: readership export'],
    [
      'late changes',
      { settling: { ...well.settling, oldest_change_days: 6 }, recommendedSettleDays: 7 },
      'settling  days changed up to 6 days after they ended: set history.settleDays to 7 (now 3)',
    ],
    [
      'a week without a comparison',
      { verifiedAt: at('11T04:59:00') },
      'verified  not compared with the platform since Nov 11, 2026 at 04:59 UTC: readership audit',
    ],
    [
      'a first load a week ago',
      { firstLoadAt: at('11T04:59:00') },
      'verified  not compared with the platform since Nov 11, 2026 at 04:59 UTC: readership audit',
    ],
    [
      'a pause',
      { requests: paused },
      'requests  4 used in the last hour; the platform refused one: the next is sent on Nov 18, 2026 at 06:00 UTC, or once readership doctor finds that it answers; about 12 due',
    ],
    [
      'a learned limit below the cap',
      { requests: { ...well.requests, perHour: 1_000, learnedPerHour: 100 } },
      'requests  4 of 100 used in the last hour, the most that the platform accepts',
    ],
    [
      'a cap below the learned limit',
      { requests: { ...well.requests, perHour: 60, learnedPerHour: 100 } },
      'requests  4 of 60 used in the last hour',
    ],
    [
      'smaller pages',
      { pageSize: 100, pageSizeUntil: day('2026-12-01') },
      'page size  100 rows at once; more will be tried again on Dec 1, 2026',
    ],
    [
      'old days that the platform refuses',
      { keptFrom: day('2026-10-01'), keptFromUntil: day('2026-12-01') },
      'kept  by the platform since Oct 1, 2026; older days will be tried again on Dec 1, 2026',
    ],
  ])('name %s', (_, changed, line) => {
    expect(lines(projectFacts({ ...well, ...changed }, NOW))).toContain(line);
  });

  it('leave out a comparison within a week, and yesterday among other missing days', () => {
    const compared = { ...well, firstLoadAt: at('01T00:00:00'), verifiedAt: at('11T05:00:00') };
    const gaps = [day('2026-11-05'), day('2026-11-17')];
    const loading = { ...well, isYesterdayStored: false, gaps };
    expect(lines(projectFacts(compared, NOW))).toHaveLength(2);
    expect(lines(projectFacts(loading, NOW)).slice(1)).toEqual([
      'loading  2 days left',
      'requests  4 used in the last hour',
    ]);
  });
});

test.each<[what: string, Partial<OperationsStatus>, line: string]>([
  [
    'a step that goes on later, and why',
    {
      runs: [
        lastRun({
          step: 'report',
          started_at: at('18T03:00:00'),
          outcome: 'later',
          summary: '0 emails sent; the mail server is off',
        }),
      ],
    },
    'last report  not finished, Nov 18, 2026 at 03:00 UTC: 0 emails sent; the mail server is off',
  ],
  [
    'emails that wait for a mail server',
    {
      writtenDeliveries: [
        { report: 'weekly', period: '2026-W46', recipient: 'docs@example.com', file: '/data/outbox/1.eml' },
      ],
    },
    'not sent  1 email, only written to a file: set READERSHIP_SMTP_URL in .env, then: readership run',
  ],
  [
    'jobs by state',
    { jobs: { completed: 8, unknown: 1 }, unknownJobs: [{ id: 7, project: 'prj_1', path: '/lost' }] },
    'jobs  8 completed, 1 unknown (see below)',
  ],
  [
    'messages',
    { plannedMessages: 2, unknownMessages: [{ id: 3, job: 7 }] },
    'messages  1 unknown, 2 planned',
  ],
  [
    'another place',
    { sendsFrom: { machine: 'a', host: 'docs-1', path: '/srv/data', isHere: false } },
    'sends from  docs-1:/srv/data; this copy sends nothing (readership adopt)',
  ],
  ['when the history was written', {}, 'last written  2 h 45 min ago'],
  [
    'a history of a clock that was ahead',
    { writtenAt: at('18T06:00:00') },
    'last written  Nov 18, 2026 at 06:00 UTC, which is in the future by this clock: readership doctor',
  ],
  ['free disk space', {}, 'disk  3.0 GB free'],
])('the facts about operations name %s', (_, changed, line) => {
  expect(lines(operationsFacts({ ...quiet, ...changed }, NOW))).toContain(line);
});

describe('what needs attention', () => {
  const settings = settingsSchema.parse({
    baseUrl: 'http://127.0.0.1',
    projects: [{ id: 'prj_1' }],
    schedule: { export: '15 2 * * *' },
  });
  type Changed = Partial<ProjectStatus & OperationsStatus>;
  const needs = (changed: Changed, now = NOW) =>
    needsOf({ projects: [{ ...well, ...changed }], operations: { ...quiet, ...changed } }, { settings }, now);
  const weekly = { report: 'weekly', project: 'p', period: '2026-W01' };
  const alert = { report: 'alert', project: '-', period: 'export 2026-01-05T00:00:00.000Z' };
  const missing = 'Acme Docs: yesterday has been missing since Nov 18, 2026 at 02:15 UTC: readership export';

  test.each<[what: string, Changed, needs: string[], now?: Date]>([
    ['nothing if all is well', {}, []],
    ['yesterday after the export', { isYesterdayStored: false }, [missing]],
    ['not before it', { isYesterdayStored: false }, [], at('18T02:14:00')],
    [
      'also of a history that begins with it',
      { isYesterdayStored: false, historyFrom: day('2026-11-17') },
      [missing],
    ],
    ['not a day before the history', { isYesterdayStored: false, historyFrom: day('2026-11-18') }, []],
    [
      'not for a site without views, as an export found',
      { isYesterdayStored: false, historyFrom: null, runs: [lastRun({})] },
      [],
    ],
    [
      'but if only an export of the night before found none',
      { isYesterdayStored: false, historyFrom: null, runs: [lastRun({ started_at: at('17T02:15:00') })] },
      [missing],
    ],
    [
      'failed days, and a day that never adds up',
      {
        failed: [day('2026-11-03')],
        stuck: [{ day: day('2026-11-02'), why: 'the rows have 3 views more', readAgain: day('2026-11-25') }],
      },
      [
        "Acme Docs: Nov 2, 2026 has not added up for several nights (the rows have 3 views more), and is read again on Nov 25, 2026. Ask the platform's operators, then: readership export --reload --from 2026-11-02 --to 2026-11-02",
        'Acme Docs: 1 day failed: readership export',
      ],
    ],
    [
      'steps that fail for one reason, in one line',
      {
        outages: (['improve', 'report'] as const).map((step, index) => ({
          step,
          since: at(`1${7 - index}T04:00:00`),
          over_at: null,
          words: `${index} done; the disk is full`,
        })),
      },
      ['improve and report have failed since Nov 16, 2026 at 04:00 UTC: the disk is full'],
    ],
    [
      'steps that fail for reasons with the same advice, each with its own',
      {
        outages: (['export', 'report'] as const).map((step) => ({
          step,
          since: at('16T04:00:00'),
          over_at: null,
          words: `Cannot write ${step}.\nRun the command again; if it fails again: readership doctor`,
        })),
      },
      ['export', 'report'].map(
        (step) =>
          `${step} has failed since Nov 16, 2026 at 04:00 UTC: Cannot write ${step}.\nRun the command again; if it fails again: readership doctor`,
      ),
    ],
    [
      'a pull request that could not be looked up',
      { pullRequestProblems: [{ job: 7, problem: 'the code host answered 404.' }] },
      ['1 pull request could not be looked up, such as that of job 7: the code host answered 404.'],
    ],
    [
      'a job and a message of unknown outcome',
      {
        unknownJobs: [{ id: 7, project: 'prj_1', path: '/lost' }],
        unknownMessages: [{ id: 3, job: 7 }],
      },
      [
        'job 7 (/lost) may or may not exist: readership jobs settle 7 --sent REMOTE_ID, or --not-sent',
        'message 3 to job 7 may or may not have arrived: readership jobs settle 7 --sent, or --not-sent',
      ],
    ],
    [
      'emails that wait, were refused, or may not have arrived, each with the command for one recipient',
      {
        waitingDeliveries: [{ ...weekly, recipient: 'b@example.com', note: 'the mail server is off' }],
        failedDeliveries: [
          { ...weekly, recipient: 'd@example.com', note: '550 no such user' },
          { ...weekly, project: '-', recipient: 'e@example.com', note: '550 no such user' },
          { ...alert, recipient: 'd@example.com', note: '550 no such user' },
        ],
        unknownDeliveries: [
          { ...weekly, recipient: 'a@example.com' },
          { ...alert, recipient: 'ops@example.com' },
        ],
      },
      [
        'weekly 2026-W01 to b@example.com has not been sent: the mail server is off. It is retried automatically; check with: readership doctor',
        'weekly 2026-W01 was not delivered to d@example.com: 550 no such user. When that is fixed: readership report send weekly --period 2026-W01 --project p --force --to d@example.com',
        'weekly 2026-W01 was not delivered to e@example.com: 550 no such user. When that is fixed: readership report send weekly --period 2026-W01 --force --to e@example.com',
        'alert export 2026-01-05T00:00:00.000Z was not delivered to d@example.com: 550 no such user. Until that is fixed, alerts do not reach it: readership doctor',
        'weekly 2026-W01 may or may not have reached a@example.com. Ask the recipient, then: readership report resolve weekly --period 2026-W01 --project p --delivered a@example.com, or --not-delivered a@example.com',
        "alert export 2026-01-05T00:00:00.000Z may or may not have reached ops@example.com. Ask the recipient, then: readership report resolve alert --period 'export 2026-01-05T00:00:00.000Z' --delivered ops@example.com, or --not-delivered ops@example.com",
      ],
    ],
  ])('is %s', (_, changed, expected, now) => {
    expect(needs(changed, now)).toEqual(expected);
  });
});
