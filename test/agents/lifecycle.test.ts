import { describe, expect, it } from 'vitest';
import { addDays, addMinutes, subDays } from 'date-fns';
import {
  EARLIEST,
  type JobEvent,
  lateJobs,
  type MessageEvent,
  nextMessageState,
  nextPoll,
  nextState,
  pollDelayMs,
} from '../../src/agents/lifecycle.js';
import { type Job, JOB_STATES, type JobState } from '../../src/state/jobs.js';
import { type JobMessage, MESSAGE_STATES, type MessageState } from '../../src/state/messages.js';

type Row<Event, State> = readonly [event: Event, from: readonly State[], to: State];
type JobRow = readonly [event: JobEvent, status: string | undefined, from: readonly JobState[], to: JobState];

const sent: readonly JobState[] = ['active', 'completed', 'failed', 'archived'];

/** Another worker, or a person, may have taken the reply for lost. */
const LATE = ['sending', 'unknown', 'planned', 'refused'] as const;

const JOB_TABLE: readonly JobRow[] = [
  ['submit', undefined, ['planned'], 'sending'],
  ['sent', 'active', LATE, 'active'],
  ['sent', 'pending', LATE, 'active'],
  ['sent', 'completed', LATE, 'completed'],
  ['not-sent', undefined, ['sending', 'unknown'], 'planned'],
  ['unknown', undefined, ['sending'], 'unknown'],
  ['refused', undefined, ['sending', 'unknown', 'planned'], 'refused'],
  ['polled', 'active', ['active', 'completed'], 'active'],
  ['polled', 'thinking hard', ['active', 'completed'], 'active'],
  ['polled', 'completed', ['active', 'completed'], 'completed'],
  ['polled', 'COMPLETED', ['active', 'completed'], 'completed'],
  ['polled', 'failed', ['active', 'completed'], 'failed'],
  ['polled', 'archived', ['active', 'completed'], 'archived'],
  ['followed-up', 'completed', sent, 'active'],
  ['found-sent', undefined, ['planned', 'unknown', 'refused', ...sent], 'active'],
  ['found-not-sent', undefined, ['unknown'], 'planned'],
  ['found-over', undefined, ['active'], 'failed'],
  ['found-pull-request', undefined, ['unknown', 'active'], 'completed'],
  ['withdrawn', undefined, ['planned', 'unknown'], 'refused'],
];

describe('the life of a job', () => {
  it.each(JOB_TABLE)('%s (%s) happens only in %s, and leads to %s', (event, status, from, to) => {
    for (const state of JOB_STATES)
      expect(nextState(state, event, status)).toBe(from.includes(state) ? to : undefined);
  });

  it('is not changed by a poll without an answer', () => {
    for (const state of ['active', 'completed'] as const) expect(nextState(state, 'polled')).toBe(state);
  });

  it('never returns to a state from which a prompt would be sent again, unless it is known not to have been sent', () => {
    const back = JOB_TABLE.filter(([, , , to]) => to === 'planned').map(([event]) => event);
    expect(back).toEqual(['not-sent', 'found-not-sent']);
  });
});

const MESSAGE_TABLE: readonly Row<MessageEvent, MessageState>[] = [
  ['submit', ['planned'], 'sending'],
  ['sent', LATE, 'sent'],
  ['not-sent', ['sending', 'unknown'], 'planned'],
  ['unknown', ['sending'], 'unknown'],
  ['refused', ['sending', 'unknown', 'planned'], 'refused'],
  ['found-sent', ['planned', 'unknown'], 'sent'],
  ['found-not-sent', ['unknown'], 'planned'],
  ['withdrawn', ['planned', 'unknown'], 'refused'],
];

describe('the life of a message', () => {
  it.each(MESSAGE_TABLE)('%s happens only in %s, and leads to %s', (event, from, to) => {
    for (const state of MESSAGE_STATES)
      expect(nextMessageState(state, event)).toBe(from.includes(state) ? to : undefined);
  });
});

it('the time between two polls doubles from the minimum to the maximum, and stays there', () => {
  const delays = [0, 1, 2, 7, 8, 9, 2_000].map((polls) => pollDelayMs(polls));
  expect(delays).toEqual([1_000, 2_000, 4_000, 128_000, 256_000, 300_000, 300_000]);
  expect(nextPoll({ next_poll_at: null, note: null }, new Date())).toBe(EARLIEST);
});

const NOW = new Date('2026-11-18T05:00:00Z');

const job = (id: number, state: Job['state'], submitted_at: Date, ended_at: Date | null = null) =>
  ({
    id,
    project: 'prj_1',
    path: `/page-${id}`,
    state,
    planned_at: submitted_at,
    submitted_at,
    ended_at,
  }) as Job;

const ended = [9, 12, 900].map((minutes, index) =>
  job(index + 1, 'completed', subDays(NOW, 30), addMinutes(subDays(NOW, 30), minutes)),
);

it('a job is late once it has been active for a day, and for three times what such jobs usually take', () => {
  const lost = job(10, 'active', subDays(NOW, 77));
  const lately = job(11, 'active', addMinutes(subDays(NOW, 1), 1));
  const usualMs = 12 * 60_000;
  expect(lateJobs([...ended, lately, lost], [], NOW)).toEqual([
    { id: 10, project: 'prj_1', path: '/page-10', since: subDays(NOW, 77), usualMs },
  ]);
  expect(lateJobs([lost], [], NOW)).toMatchObject([{ id: 10, usualMs: null }]);
  // Where jobs take a week, a day is not late.
  const slow = job(4, 'completed', subDays(NOW, 30), subDays(NOW, 23));
  const waiting = [job(12, 'active', subDays(NOW, 20)), job(13, 'active', subDays(NOW, 22))];
  expect(lateJobs([slow, ...waiting], [], NOW).map(({ id }) => id)).toEqual([13]);
});

it('a job that got a message is active since then', () => {
  const lost = job(10, 'active', subDays(NOW, 77));
  const message = (submitted_at: Date | null) => ({ job: 10, submitted_at }) as JobMessage;
  expect(lateJobs([lost], [message(subDays(NOW, 2)), message(null)], NOW)).toMatchObject([
    { since: subDays(NOW, 2) },
  ]);
  expect(lateJobs([lost], [message(addDays(NOW, -0.5))], NOW)).toEqual([]);
});
