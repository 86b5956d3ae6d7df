import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ClockError } from '../../src/api/errors.js';
import { conclude } from '../../src/commands/steps.js';
import { startOfDay } from '../../src/day.js';
import { ConfigurationError, StorageError } from '../../src/errors.js';
import { plainDayRange } from '../../src/format/days.js';
import { thousands } from '../../src/format/numbers.js';
import { lastEnded } from '../../src/reports/period.js';
import { expectWhole, statesOf } from '../export/stored-days.js';
import { inHistory, rowsOf, valuesOf } from '../open-history.js';
import { answerOf } from '../duckdb.js';
import { callCli, runCli, runtimeIn } from '../run-cli.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import {
  daysAgo,
  endedWith,
  env,
  expectCleanEnd,
  historyFile,
  platformOf,
  platformWorkspace,
} from './workspace.js';

const logLine = z.looseObject({
  time: z.iso.datetime(),
  step: z.string(),
  outcome: z.string().optional(),
  summary: z.string().optional(),
});
/** An answer that asks to wait for an hour. */
const WAIT = { 'retry-after': '3600' };
const recordSchema = z.object({ jobs: z.array(z.object({ id: z.string() })) });

describe('readership run --sandbox', () => {
  it('runs the whole loop; a second run reloads no final day, creates no second job, and says so', async () => {
    const cwd = await tempDir();
    const data = join(cwd, 'data', 'sandbox');
    const record = async () =>
      recordSchema.parse(JSON.parse(await readFile(join(data, 'sandbox.json'), 'utf8'))).jobs;
    const stored = () =>
      inHistory(join(data, 'history.duckdb'), async (history) => {
        await expectWhole(history);
        const rows = (sql: string) => rowsOf(history, sql);
        return {
          jobs: await rows('SELECT remote_id, path, state, pr_link FROM jobs ORDER BY id'),
          attempts: await rows("SELECT day, checked_at FROM days WHERE state = 'final' ORDER BY day"),
          states: Object.values(await statesOf(history)),
          merged: await rows('FROM jobs WHERE pr_link IS NOT NULL AND merged_on IS NOT NULL'),
          closed: await rows('FROM jobs WHERE pr_link IS NOT NULL AND closed_on IS NOT NULL'),
          notes: await valuesOf(history, 'SELECT is_break FROM notes ORDER BY day'),
        };
      });

    const first = endedWith(0, await runCli(['run', '--sandbox'], { cwd }));
    await expectCleanEnd(cwd, first, 'READERSHIP_API_KEY=');
    const [, days, requests] = /(\d+) new days of .+ rows, (\d+) requests/.exec(first.stdout) ?? [];
    // Two a day.
    expect(Number(requests)).toBeLessThan(3 * Number(days));
    expect(first.stdout).toContain('5 jobs created');
    // Each job is printed once, however often it changed.
    const printed = `${first.stderr}\n${first.stdout}`.match(
      /^ +\d+(?= {2}(active|completed|failed|archived))/gm,
    );
    expect(printed?.length).toBeGreaterThan(5);
    expect(new Set(printed).size).toBe(printed?.length);
    expect(first.stderr).not.toMatch(/^job /m);
    expect(first.stderr).toContain('Everything in the sandbox is simulated');
    expect(first.stdout).toMatch(/https:\/\/\S+\/pull\/\d+/);
    const once = await stored();
    expect(new Set(once.states)).toEqual(new Set(['final', 'provisional']));
    expect(new Set(once.jobs.map(({ state }) => state))).not.toContain('active');
    // Jobs of earlier weeks were merged, so there are views before and after.
    expect(once.merged.length).toBeGreaterThanOrEqual(3);
    // Last week is worth an email: one page really moved, and one is new.
    expect(first.stdout).toMatch(/\/guides\/webhooks had [\d,]+ human views, \d+% more than expected/);
    expect(
      await readFile(
        join(cwd, /(data\/sandbox\/reports\/\S+\/weekly\S+\.html)/.exec(first.stdout)?.[1] ?? ''),
        'utf8',
      ),
    ).toContain('/guides/mcp-server');
    expect(once.notes).toEqual([true, false]);
    expect((await record()).map(({ id }) => id).sort()).toEqual(
      once.jobs.map((job) => job['remote_id']).sort(),
    );
    const report = /(data\/sandbox\/reports\/\S+\.html)/.exec(first.stdout)?.[1] ?? '';
    expect(await readFile(join(cwd, report), 'utf8')).toContain('Acme Docs');
    expect(first.stdout).toContain('report weekly --sandbox --open\n');
    // The three queries that the summary suggests work.
    const offered = [...first.stdout.matchAll(/^ +node \/.+cli\.js sql --sandbox "(.+)"$/gm)];
    expect(offered).toHaveLength(3);
    for (const [, query = ''] of offered) {
      const answer = endedWith(0, await runCli(['sql', '--sandbox', query, '--format', 'json'], { cwd }));
      expect(JSON.parse(answer.stdout)).not.toHaveLength(0);
    }

    const lastWeek = 'FROM site_weeks WHERE days_loaded = 7 ORDER BY week DESC LIMIT 1';
    const { stdout: rows } = await runCli(['sql', '--sandbox', lastWeek, '--format', 'json'], { cwd });
    const [read] = z.tuple([z.object({ human: z.int(), ai: z.int() })]).parse(JSON.parse(rows));
    const inWords = (views: number) => views.toLocaleString('en-US');
    expect(first.stdout).toContain(`: ${inWords(read.human)} views by people, ${inWords(read.ai)} by AI (`);

    const second = endedWith(0, await callCli(['run', '--sandbox'], { cwd }));
    expect(second.stdout).not.toContain('Loaded');
    expect(second.stdout).toContain('Acme Docs: no new job: 5 jobs already planned for the week of ');
    expect(second.stderr).not.toContain('simulated');
    const twice = await stored();
    expect(twice.jobs).toEqual(once.jobs);
    expect(twice.attempts.slice(0, once.attempts.length)).toEqual(once.attempts);
    expect(await record()).toHaveLength(once.jobs.length);
    const third = endedWith(0, await callCli(['run', '--sandbox'], { cwd }));
    expect(third.stdout).toBe(
      'Everything is up to date. To see what is stored: readership status --sandbox\n',
    );
    expect(await stored()).toEqual(twice);

    const audited = endedWith(0, await callCli(['audit', '--sandbox', '--json'], { cwd }));
    const ends = audited.stdout
      .trim()
      .split('\n')
      .map((line) => logLine.parse(JSON.parse(line)))
      .flatMap(({ step, outcome, summary }) => (outcome === undefined ? [] : [{ step, outcome, summary }]));
    expect(ends).toEqual([{ step: 'audit', outcome: 'done', summary: 'no days differ' }]);
  });
});

it('readership run says who read the site in the week as reports have it, also if it begins on a Sunday', async () => {
  const cwd = await platformWorkspace(await platformOf(20, 3), 'reports: { firstDayOfWeek: sunday }\n');
  const { stdout } = endedWith(0, await callCli(['run'], { cwd, env }));
  const week = lastEnded('week', new Date(), { firstDayOfWeek: 'sunday', timezone: 'UTC' });
  expect(startOfDay(week.first).getUTCDay()).toBe(0);
  const [views] = await inHistory(historyFile(cwd), (history) =>
    valuesOf(
      history,
      `SELECT sum(human)::BIGINT FROM site_days WHERE day BETWEEN '${week.first}' AND '${week.last}'`,
    ),
  );
  expect(stdout).toContain(
    `Acme Docs, ${plainDayRange(week)}: ${thousands(Number(views))} views by people, `,
  );
});

it.each([
  ['fails', (response: ServerResponse) => response.end('<html>'), 1, 1],
  ['is to be run again later', (response: ServerResponse) => response.writeHead(503, WAIT).end(), 75, 0],
])(
  'readership run that %s says so by its exit code; --paused-ok hides only a pause',
  async (_, answer, code, paused) => {
    const platform = await serve((__, response) => answer(response));
    const cwd = await platformWorkspace(platform);
    endedWith(code, await callCli(['run'], { cwd, env }));
    endedWith(paused, await callCli(['run', '--paused-ok'], { cwd, env }));
  },
);

it('readership audit exits with 1 until a day that differs is repaired', async () => {
  const cwd = await platformWorkspace(await platformOf(10, 3));
  const end = (...args: string[]) => callCli(args, { cwd, env });
  endedWith(2, await end('export', '--to', daysAgo(0)));
  endedWith(0, await end('export'));
  const one = `day = '${daysAgo(6)}'`;
  await answerOf(historyFile(cwd), `UPDATE days SET human = human - 1, total = total - 1 WHERE ${one}`);
  endedWith(1, await end('audit'));
  endedWith(0, await end('audit', '--repair'));
  endedWith(0, await end('audit'));
});

it('readership improve exits with 1 if a page gets no job', async () => {
  const cwd = await platformWorkspace(await platformOf(10, 3));
  endedWith(0, await callCli(['export'], { cwd, env }));
  endedWith(1, await callCli(['improve', '--apply', '/nowhere'], { cwd, env }));
});

it('of several problems, the exit code is that of what a person must fix first', () => {
  const [later, failed, wrong] = [
    new ClockError('later'),
    new StorageError('failed'),
    new ConfigurationError('wrong'),
  ];
  const codeOf = (...errors: Error[]) =>
    conclude(
      errors.map((error) => ({ step: 'export', outcome: 'failed', error })),
      runtimeIn('/').runtime,
    );
  expect([codeOf(), codeOf(later), codeOf(later, failed), codeOf(later, failed, wrong)]).toEqual([
    0, 75, 1, 2,
  ]);
});
