import { expect, it } from 'vitest';
import { isInReview } from '../../src/agents/plan.js';
import type { Job } from '../../src/state/jobs.js';
import { improveStep } from '../../src/steps/improve.js';
import { pollStep } from '../../src/steps/poll.js';
import { settleJob } from '../../src/steps/settle-job.js';
import { agentDesk } from '../agents/agent-desk.js';
import { steadyPages, storeReading } from '../agents/reading.js';

const DAY = 24 * 3600;

/** The jobs after some weeks in which a person reviews every pull request like this, or none. */
async function after(weeks: number, pages: number, review?: 'merged' | 'closed') {
  const desk = await agentDesk({ jobSeconds: 1, outcomes: ['pull-request'] });
  const history = { project: desk.project, first: '2026-09-14', last: '2027-07-01' };
  await storeReading(desk.history, steadyPages(pages), history);
  const parts = desk.parts({ settings: { improve: { mode: 'apply' } } });
  const lookUp = () => expect.fail('nothing is looked up');
  const task = { state: desk.state, workspace: parts.workspace, now: desk.clock.now, lookUp };
  let mostOpen = 0;
  const days: number[] = [];
  for (let week = 0; week < weeks; week++) {
    const { error, detail } = await improveStep(parts, { apply: true });
    expect(error).toBeUndefined();
    days.push(detail.reduce((sum, { created }) => sum + created, 0));
    desk.clock.advance(DAY);
    await pollStep(parts, {});
    const open = desk.jobs().filter(isInReview);
    mostOpen = Math.max(mostOpen, open.length);
    if (review !== undefined) for (const { id } of open) await settleJob(task, id, { as: review });
    desk.clock.advance(6 * DAY);
  }
  return { jobs: desk.jobs(), mostOpen, days };
}

const pathsOf = (jobs: readonly Job[]) => jobs.map(({ path }) => path);

it('half a year in which nobody reviews leaves ten pull requests open, and no page has two', async () => {
  const { jobs, mostOpen, days } = await after(26, 60);
  expect(mostOpen).toBe(10);
  expect(days.slice(0, 3)).toEqual([5, 5, 0]);
  expect(new Set(pathsOf(jobs)).size).toBe(10);
});

it('half a year in which a person rejects every pull request: no page returns', async () => {
  const { jobs } = await after(26, 30, 'closed');
  expect(jobs.length).toBeGreaterThan(25);
  expect(new Set(pathsOf(jobs)).size).toBe(jobs.length);
});
