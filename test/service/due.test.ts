import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { dueSteps } from '../../src/service/due.js';
import type { LastRun, StepName } from '../../src/state/runs.js';

const scheduleOf = (schedule = {}) =>
  settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }], schedule }).schedule;

const at = (text: string) => new Date(`${text}Z`);

const run = (step: StepName, started: string, more: Partial<LastRun> = {}): LastRun => ({
  ...{ step, started_at: at(started), outcome: 'done', resume_at: null, summary: null },
  ...{ done_at: at(started), failures: 0, ...more },
});

/** All five steps done at that moment. */
const allDone = (started: string): LastRun[] =>
  (['export', 'improve', 'poll', 'report', 'publish'] as const).map((step) => run(step, started));

const withRun = (runs: LastRun[], changed: LastRun): LastRun[] => [
  ...runs.filter(({ step }) => step !== changed.step),
  changed,
];

const SERVICE_SINCE = at('2026-03-01T00:00:00');

const due = (
  runs: readonly LastRun[],
  now: string,
  schedule = {},
  { pollWaits = false, hasNewPrompts = false, isUpToDate = true, serviceSince = SERVICE_SINCE } = {},
): StepName[] => {
  const stored = { runs, pollWaits, hasNewPrompts, isUpToDate, serviceSince };
  return [...dueSteps(scheduleOf(schedule), stored, at(now))];
};

// A Friday.
const NIGHT = '2026-11-20T02:15:00';
const failed: Partial<LastRun> = { outcome: 'failed', done_at: at('2026-11-19T02:15:00'), failures: 1 };

describe('what is due', () => {
  it('is everything at the first start, except polling, since there are no jobs yet', () => {
    expect(due([], NIGHT)).toEqual(['export', 'improve', 'report', 'publish']);
  });

  it('is publishing while the dataset is not up to date: at first, and after a crash between a step and its publish', () => {
    const notPublished = allDone(NIGHT).filter(({ step }) => step !== 'publish');
    for (const runs of [notPublished, allDone(NIGHT)])
      expect(due(runs, '2026-11-20T02:20:00', {}, { isUpToDate: false })).toEqual(['publish']);
  });

  it('is nothing right after everything was done, however often it is checked', () => {
    for (const now of [NIGHT, '2026-11-20T02:15:01', '2026-11-20T02:59:59'])
      expect(due(allDone(NIGHT), now)).toEqual([]);
    const runs = allDone('2026-11-20T02:15:45');
    const everyMinute = due(runs, '2026-11-20T02:16:00', { poll: '* * * * *' }, { pollWaits: true });
    expect(everyMinute).toEqual(['poll', 'publish']);
  });

  it('is each step from its scheduled time on, and publishing what changed', () => {
    const runs = allDone('2026-11-20T01:30:00');
    expect(due(runs, '2026-11-20T01:59:59')).toEqual([]);
    expect(due(runs, '2026-11-20T02:00:00')).toEqual(['report', 'publish']);
    expect(due(runs, NIGHT)).toEqual(['export', 'report', 'publish']);
    expect(due(runs, '2026-11-23T04:00:00')).toEqual(['export', 'improve', 'report', 'publish']);
  });

  it('is a step that left an email waiting, from the time that it gave on, whatever its schedule', () => {
    const weekly = { report: '0 3 * * 1' };
    const held = run('report', NIGHT, { resume_at: at('2026-11-20T03:15:00') });
    const runs = withRun(allDone(NIGHT), held);
    expect(due(runs, '2026-11-20T03:14:00', weekly)).toEqual([]);
    expect(due(runs, '2026-11-20T03:15:00', weekly)).toEqual(['report', 'publish']);
    expect(due(withRun(runs, run('report', NIGHT)), '2026-11-20T03:15:00', weekly)).toEqual([]);
  });

  it('is polling if a job is waiting, but no more often than scheduled', () => {
    const runs = allDone(NIGHT);
    expect(due(runs, '2026-11-20T02:20:00', {}, { pollWaits: true })).toEqual(['poll', 'publish']);
    expect(due(runs, '2026-11-20T02:19:00', {}, { pollWaits: true })).toEqual([]);
    expect(due(runs, '2026-11-20T02:20:00', {}, { pollWaits: false })).toEqual([]);
    // What a person approved is sent at once.
    const approved = { pollWaits: true, hasNewPrompts: true };
    expect(due(runs, '2026-11-20T02:19:00', {}, approved)).toEqual(['poll', 'publish']);
  });

  it.each(['failed', 'later', 'interrupted', 'running'] as const)(
    'is a step that is %s, at the next tick',
    (outcome) => {
      const runs = withRun(allDone(NIGHT), run('export', NIGHT, { ...failed, outcome }));
      expect(due(runs, '2026-11-20T02:20:00')).toEqual(['export', 'publish']);
    },
  );

  it('is a paused step from the resume time of the budget or server on, and not before', () => {
    const resume_at = at('2026-11-20T03:10:00');
    const runs = withRun(allDone(NIGHT), run('export', NIGHT, { ...failed, outcome: 'later', resume_at }));
    expect(due(runs, '2026-11-20T02:55:00')).toEqual([]);
    expect(due(runs, '2026-11-20T03:10:00')).toContain('export');
    // Two hours later at most, even if a wrong clock stored another time.
    const wrong = { ...failed, outcome: 'later', resume_at: at('2027-12-01T00:00:00') } as const;
    const ahead = withRun(allDone(NIGHT), run('export', NIGHT, wrong));
    expect(due(ahead, '2026-11-20T04:14:00')).not.toContain('export');
    expect(due(ahead, '2026-11-20T04:15:00')).toContain('export');
  });

  it('is a paused step at once after a restart, because the setting that caused the pause may have changed', () => {
    const resume_at = at('2026-11-20T03:10:00');
    const runs = withRun(allDone(NIGHT), run('export', NIGHT, { ...failed, outcome: 'later', resume_at }));
    const restarted = { serviceSince: at('2026-11-20T02:20:00') };
    expect(due(runs, '2026-11-20T02:20:00', {}, restarted)).toEqual(['export', 'publish']);
  });

  it('survives weeks offline and a clock jump: forward, everything due comes once; back, nothing comes twice', () => {
    const jumped = '2026-12-24T12:00:00';
    expect(due(allDone(NIGHT), jumped)).toContain('export');
    expect(due(allDone(jumped), '2026-12-24T12:05:00')).toEqual([]);
    expect(due(allDone(jumped), '2026-12-24T11:59:00')).toEqual([]);
    // A service that began by a clock that was ahead still waits longer after each failure.
    const runs = withRun(allDone(NIGHT), run('export', '2026-11-20T03:00:00', { ...failed, failures: 4 }));
    const stored = { serviceSince: at(jumped) };
    expect(due(runs, '2026-11-20T03:07:00', {}, stored)).not.toContain('export');
    expect(due(runs, '2026-11-20T03:08:00', {}, stored)).toContain('export');
  });
});
