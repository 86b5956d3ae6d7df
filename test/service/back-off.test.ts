import { addMinutes } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { dueSteps } from '../../src/service/due.js';
import { readLastRuns, recordStepEnd, recordStepStart, type StepEnd } from '../../src/state/runs.js';
import { openTestState } from '../open-state.js';

const { schedule } = settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] });
const NIGHT = new Date('2026-11-20T02:15:00Z');
const TICK_MINUTES = 5;

type Ended = Pick<StepEnd, 'outcome'> & { readonly resume_at?: Date };

/**
 * Ticks every five minutes starting at the nightly export, with all other steps done; `attempt`
 * decides how each export ends.
 */
async function ticks(minutes: number, attempt: (now: Date) => Ended, restartedAt = new Date(0)) {
  const { state } = await openTestState();
  const record = async (step: 'export' | 'improve' | 'report' | 'publish', now: Date, ended: Ended) => {
    const run = `${step} ${now.toISOString()}`;
    await recordStepStart(state, run, step, now);
    await recordStepEnd(state, run, step, { resume_at: null, summary: '', now, ...ended });
  };
  await record('export', new Date('2026-11-19T02:15:00Z'), { outcome: 'done' });
  const tried: number[] = [];
  for (let minute = 0; minute <= minutes; minute += TICK_MINUTES) {
    const now = addMinutes(NIGHT, minute);
    const runs = readLastRuns(state, now);
    const serviceSince = restartedAt <= now ? restartedAt : new Date(0);
    const due = dueSteps(
      schedule,
      { runs, pollWaits: false, hasNewPrompts: false, isUpToDate: true, serviceSince },
      now,
    );
    if (due.has('export')) {
      tried.push(minute);
      await record('export', now, attempt(now));
    }
    for (const step of ['improve', 'report', 'publish'] as const)
      if (due.has(step)) await record(step, now, { outcome: 'done' });
  }
  return tried;
}

describe('a step that keeps failing', () => {
  it.each(['failed', 'later'] as const)(
    'is tried again at the next ticks, then less and less often, down to about once an hour, if it is %s',
    async (outcome) => {
      const tried = await ticks(6 * 60, () => ({ outcome }));
      expect(tried).toEqual([0, 5, 10, 15, 25, 45, 80, 140, 200, 260, 320]);
    },
  );

  it('starts over with short delays after it has succeeded once', async () => {
    const works = addMinutes(NIGHT, 200);
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
      { outcome: 'later', resume_at: addMinutes(NIGHT, 60) },
      { outcome: 'later', resume_at: addMinutes(NIGHT, 70) },
      { outcome: 'failed' },
      { outcome: 'failed' },
    ];
    const tried = await ticks(100, () => ended.shift() ?? { outcome: 'done' });
    // Three failures: delays of one, two and four minutes.
    expect(tried).toEqual([0, 5, 10, 60, 70, 75, 80]);
  });
});

it('publishing that keeps failing is delayed too, even if other steps are due', () => {
  const failedAt = new Date('2026-11-20T03:00:00Z');
  const run = { started_at: failedAt, resume_at: null, summary: null, failures: 0 } as const;
  const done = { ...run, outcome: 'done', done_at: failedAt } as const;
  const runs = [
    ...(['export', 'improve', 'report'] as const).map((step) => ({ ...done, step })),
    { ...run, step: 'publish', outcome: 'failed', done_at: NIGHT, failures: 9 } as const,
  ];
  const dueAt = (minutes: number, pollWaits: boolean) => {
    const stored = { runs, pollWaits, hasNewPrompts: false, isUpToDate: false, serviceSince: new Date(0) };
    return [...dueSteps(schedule, stored, addMinutes(failedAt, minutes))];
  };
  expect(dueAt(5, false)).toEqual([]);
  expect(dueAt(55, true)).toEqual(['poll']);
  expect(dueAt(59, false)).toEqual([]);
  expect(dueAt(60, false)).toContain('publish');
});
