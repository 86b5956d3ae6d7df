import { expect, test } from 'vitest';
import { day } from '../../src/day.js';
import type { Job } from '../../src/state/jobs.js';
import { describeJob, jobLines } from '../../src/print/jobs.js';

const PULL_REQUEST = 'https://code.example.com/acme/docs/pull/214';
const completed: Job = {
  id: 7,
  reference: 'r7',
  project: 'prj_1',
  path: '/reference/subscriptions',
  prompt: 'Improve it.',
  planned_at: new Date('2026-11-01'),
  attempt: 1,
  submitted_at: new Date('2026-11-01'),
  note: null,
  state: 'completed',
  is_approved: false,
  remote_id: 'job_1',
  reason: 'much read',
  remote_status: 'completed',
  pr_link: PULL_REQUEST,
  polls: 1,
  next_poll_at: null,
  ended_at: new Date('2026-11-02'),
  merged_on: null,
  closed_on: null,
  merged_into: null,
  pull_request_problem: null,
  weekly_human: 0,
  weekly_ai: 0,
  trend: null,
  weeks: [],
};
const lineOf = async (found: Partial<Job>, width: number) =>
  (await jobLines([{ ...completed, ...found }], width))[1];

test.each<[found: Partial<Job>, outcome: string]>([
  [{}, PULL_REQUEST],
  [{ merged_on: day('2026-11-02') }, `${PULL_REQUEST} merged`],
  [{ closed_on: day('2026-11-02') }, `${PULL_REQUEST} closed`],
  [{ merged_into: 'staging' }, `${PULL_REQUEST} merged into staging`],
  [{ pull_request_problem: 'it answered 404.' }, `${PULL_REQUEST} not looked up`],
  [{ pr_link: null, merged_on: day('2026-11-02') }, 'committed directly'],
  [{ pr_link: null }, 'ended without changes'],
  [{ pr_link: null, note: 'x'.repeat(49) }, `${'x'.repeat(47)}…`],
])('the outcome of a job with %j is “%s”', async (found, outcome) => {
  expect(await lineOf(found, 200)).toBe(`  7  completed  ${completed.path}  ${outcome}`);
});

test('a table of jobs that is too wide has the numbers of pull requests, not a part of their addresses', async () => {
  expect(await lineOf({}, 80)).toBe(`  7  completed  ${completed.path}  #214`);
  const other = 'https://code.example.com/x/abcdef';
  const merged = { pr_link: other, merged_on: day('2026-11-02') };
  expect(await lineOf(merged, 72)).toBe(`  7  completed  /refere…ptions  ${other} merged`);
});

test.each<[found: Partial<Job>, fact: RegExp]>([
  [{ pull_request_problem: 'it answered 404.' }, /\n {2}not looked up +it answered 404\./],
  [{ merged_into: 'staging' }, /\n {2}not merged yet +merged into staging, which is neither the branch/],
])('a job with %j says why its pull request waits for no review', (found, fact) => {
  const job = { ...completed, ...found };
  expect(describeJob({ job, messages: [], changes: [], effect: undefined })).toMatch(fact);
});
