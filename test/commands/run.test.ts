import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectWhole, statesOf } from '../export/stored-days.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { callCli, runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { expectCleanEnd } from './workspace.js';

const jobsRow = z.object({
  remote_id: z.string(),
  path: z.string(),
  state: z.string(),
  pr_link: z.string().nullable(),
});
const logLine = z.looseObject({
  time: z.iso.datetime(),
  step: z.string(),
  outcome: z.string().optional(),
  summary: z.string().optional(),
});
const recordSchema = z.object({ jobs: z.array(z.object({ id: z.string() })) });

describe('readership run --sandbox', () => {
  it('runs the whole loop; a second run reloads no final day, creates no second job, and says so', async () => {
    const cwd = await tempDir();
    const data = join(cwd, 'data', 'sandbox');
    const record = async () =>
      recordSchema.parse(JSON.parse(await readFile(join(data, 'sandbox.json'), 'utf8'))).jobs;
    const stored = async () => {
      const warehouse = await liveWarehouse(join(data, 'warehouse.duckdb'));
      await expectWhole(warehouse);
      const jobs = await warehouse.query(
        'SELECT remote_id, path, state, pr_link FROM agent_jobs ORDER BY id',
        jobsRow,
      );
      const reviews = await warehouse.query(
        'SELECT merged_on IS NOT NULL AS merged, closed_on IS NOT NULL AS closed FROM jobs WHERE pr_link IS NOT NULL',
        z.object({ merged: z.boolean(), closed: z.boolean() }),
      );
      const pairs = (await warehouse.query('FROM experiment_pairs WHERE is_treated', z.object({}))).length;
      const notes = await warehouse.query('FROM notes ORDER BY day', z.object({ is_break: z.boolean() }));
      const attempts = await warehouse.query(
        "SELECT day, attempted_at FROM day_loads WHERE state = 'final' ORDER BY day",
        z.object({ day: z.string(), attempted_at: z.string() }),
      );
      const states = Object.values(await statesOf(warehouse));
      await closeNow(warehouse);
      return { jobs, attempts, states, reviews, pairs, notes: notes.map(({ is_break }) => is_break) };
    };

    const first = await runCli(['run', '--sandbox'], { cwd });
    expect(first.code, first.stderr).toBe(0);
    await expectCleanEnd(cwd, first, 'READERSHIP_API_KEY=');
    const [, days, requests] = /(\d+) new days of .+ rows, (\d+) requests/.exec(first.stdout) ?? [];
    // Two a day, and not those of the weeks before.
    expect(Number(requests)).toBeLessThan(3 * Number(days));
    expect(first.stdout).toMatch(/[45] jobs created/);
    expect(first.stderr).toContain('Everything in the new sandbox is simulated');
    expect(first.stdout).toMatch(/https:\/\/\S+\/pull\/\d+/);
    const once = await stored();
    expect(new Set(once.states)).toEqual(new Set(['final', 'provisional']));
    expect(new Set(once.jobs.map(({ state }) => state))).not.toContain('active');
    // The weeks before were played back: the effect of their jobs can be measured.
    const { reviews, pairs, notes } = once;
    expect(reviews.filter(({ merged }) => merged).length).toBeGreaterThanOrEqual(8);
    expect(reviews.some(({ closed }) => closed)).toBe(true);
    expect(pairs).toBeGreaterThanOrEqual(16);
    expect(notes).toEqual([true, false]);
    expect((await record()).map(({ id }) => id).sort()).toEqual(once.jobs.map((job) => job.remote_id).sort());
    const report = /(data\/sandbox\/reports\/\S+\.html)/.exec(first.stdout)?.[1] ?? '';
    expect(await readFile(join(cwd, report), 'utf8')).toContain('Acme Docs');
    expect(first.stdout).toContain('report weekly --sandbox --open\n');
    // The three queries that the summary suggests work.
    const offered = [...first.stdout.matchAll(/^ +node \/.+cli\.js sql --sandbox "(.+)"$/gm)];
    expect(offered).toHaveLength(3);
    for (const [, query = ''] of offered) {
      const answer = await runCli(['sql', '--sandbox', query, '--format', 'json'], { cwd });
      expect(answer.code, answer.stderr).toBe(0);
      expect(JSON.parse(answer.stdout)).not.toHaveLength(0);
    }

    const lastWeek = 'FROM site_weeks WHERE days_loaded = 7 ORDER BY week DESC LIMIT 1';
    const { stdout: rows } = await runCli(['sql', '--sandbox', lastWeek, '--format', 'json'], { cwd });
    const [read] = z.tuple([z.object({ human: z.int(), ai: z.int() })]).parse(JSON.parse(rows));
    const inWords = (views: number) => views.toLocaleString('en-US');
    expect(first.stdout).toContain(`: ${inWords(read.human)} views by people, ${inWords(read.ai)} by AI (`);

    const second = await callCli(['run', '--sandbox'], { cwd });
    expect(second.code, second.stderr).toBe(0);
    expect(second.stdout).toMatch(/2[01]\d days already final, not read again/);
    expect(second.stderr).not.toContain('simulated');
    const twice = await stored();
    expect(twice.jobs).toEqual(once.jobs);
    expect(twice.attempts.slice(0, once.attempts.length)).toEqual(once.attempts);
    expect(await record()).toHaveLength(once.jobs.length);

    const audited = await callCli(['audit', '--sandbox', '--json'], { cwd });
    expect(audited.code, audited.stderr).toBe(0);
    const ends = audited.stdout
      .trim()
      .split('\n')
      .map((line) => logLine.parse(JSON.parse(line)))
      .flatMap(({ step, outcome, summary }) => (outcome === undefined ? [] : [{ step, outcome, summary }]));
    expect(ends).toEqual([
      { step: 'audit', outcome: 'done', summary: 'no days differ' },
      { step: 'publish', outcome: 'done', summary: expect.any(String) as string },
    ]);
  });
});
