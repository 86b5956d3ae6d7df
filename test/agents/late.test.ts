import { addDays, addMinutes, subDays } from 'date-fns';
import { expect, it } from 'vitest';
import { lateJobs } from '../../src/agents/lifecycle.js';
import type { Job } from '../../src/state/jobs.js';
import type { JobMessage } from '../../src/state/messages.js';

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
