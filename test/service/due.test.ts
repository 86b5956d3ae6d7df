import { addMinutes } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { dueSteps } from '../../src/service/due.js';
import {
  type LastRun,
  readLastRuns,
  recordStepEnd,
  recordStepStart,
  type StepEnd,
  type StepName,
} from '../../src/state/runs.js';
import { openTestState } from '../open-state.js';

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
  now: string | Date,
  schedule = {},
  { pollWaits = false, hasNewPrompts = false, isUpToDate = true, serviceSince = SERVICE_SINCE } = {},
): StepName[] => {
  const stored = { runs, pollWaits, hasNewPrompts, isUpToDate, serviceSince };
  return [...dueSteps(scheduleOf(schedule), stored, typeof now === 'string' ? at(now) : now)];
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

describe('a step that keeps failing', () => {
  type Ended = Pick<StepEnd, 'outcome'> & { readonly resume_at?: Date };
  const night = at(NIGHT);

  /** Ticks every five minutes from the nightly export on, with all other steps done; `attempt` decides how each export ends. */
  async function ticks(minutes: number, attempt: (now: Date) => Ended) {
    const { state } = await openTestState();
    const record = async (step: StepName, now: Date, ended: Ended) => {
      const run = `${step} ${now.toISOString()}`;
      await recordStepStart(state, run, step, now);
      await recordStepEnd(state, run, step, { resume_at: null, summary: '', now, ...ended });
    };
    await record('export', at('2026-11-19T02:15:00'), { outcome: 'done' });
    const tried: number[] = [];
    for (let minute = 0; minute <= minutes; minute += 5) {
      const now = addMinutes(night, minute);
      const steps = due(readLastRuns(state, now), now, {}, { serviceSince: new Date(0) });
      if (steps.includes('export')) tried.push(minute);
      for (const step of steps)
        await record(step, now, step === 'export' ? attempt(now) : { outcome: 'done' });
    }
    return tried;
  }

  it.each(['failed', 'later'] as const)(
    'is tried again at the next ticks, then less and less often, down to about once an hour, if it is %s',
    async (outcome) => {
      const tried = await ticks(6 * 60, () => ({ outcome }));
      expect(tried).toEqual([0, 5, 10, 15, 25, 45, 80, 140, 200, 260, 320]);
    },
  );

  it('starts over with short delays after it has succeeded once', async () => {
    const works = addMinutes(night, 200);
    const tried = await ticks(25 * 60, (now) => ({
      outcome: now.getTime() === works.getTime() ? 'done' : 'failed',
    }));
    const next = 24 * 60;
    expect(tried.slice(-8)).toEqual([140, 200, next, next + 5, next + 10, next + 15, next + 25, next + 45]);
  });

  it('is not delayed further by interruptions, or by pauses with a resume time', async () => {
    const ended: Ended[] = [
      { outcome: 'failed' },
      { outcome: 'interrupted' },
      { outcome: 'later', resume_at: addMinutes(night, 60) },
      { outcome: 'later', resume_at: addMinutes(night, 70) },
      { outcome: 'failed' },
      { outcome: 'failed' },
    ];
    const tried = await ticks(100, () => ended.shift() ?? { outcome: 'done' });
    // Three failures: delays of one, two and four minutes.
    expect(tried).toEqual([0, 5, 10, 60, 70, 75, 80]);
  });

  it('is publishing too, even if other steps are due', () => {
    const failedAt = '2026-11-20T03:00:00';
    const failedPublish = run('publish', failedAt, { outcome: 'failed', done_at: night, failures: 9 });
    const runs = withRun(allDone(failedAt), failedPublish).filter(({ step }) => step !== 'poll');
    const dueAt = (minutes: number, pollWaits: boolean) =>
      due(runs, addMinutes(at(failedAt), minutes), {}, { pollWaits, isUpToDate: false });
    expect(dueAt(5, false)).toEqual([]);
    expect(dueAt(55, true)).toEqual(['poll']);
    expect(dueAt(59, false)).toEqual([]);
    expect(dueAt(60, false)).toContain('publish');
  });
});
