import { expect, test } from 'vitest';
import type { Job } from '../../src/state/jobs.js';
import { jobLines } from '../../src/print/jobs.js';

test('a table of jobs that is too wide has the numbers of pull requests, not a part of their addresses', async () => {
  const job = { id: 7, state: 'completed', merged_on: '2026-11-02', closed_on: null, note: null };
  const path = '/reference/subscriptions';
  const lines = (prLink: string | null, width: number) =>
    jobLines([{ ...job, path, pr_link: prLink } as Job], width).then(([, line]) => line);
  const address = 'https://code.example.com/acme/docs/pull/214';
  expect(await lines(address, 100)).toBe(`  7  completed  ${path}  ${address} merged`);
  expect(await lines(address, 80)).toBe(`  7  completed  ${path}  #214 merged`);
  expect(await lines(null, 80)).toBe(`  7  completed  ${path}  committed directly`);
  const other = 'https://code.example.com/x/abcdef';
  expect(await lines(other, 72)).toBe(`  7  completed  /refere…ptions  ${other} merged`);
});
