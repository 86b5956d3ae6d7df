import { addHours, addMinutes } from 'date-fns';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { recover } from '../../src/state/sender.js';
import { readLastRuns, readOutages, recordStepEnd, recordStepStart } from '../../src/state/runs.js';
import { type OpenState, openTestState } from '../open-state.js';
import { NOW } from '../sandbox/open-sandbox.js';

const at = (hours: number) => addHours(NOW, hours);
const inHours = (instant: Date) => (instant.getTime() - NOW.getTime()) / 3_600_000;

/** A state with exports: the hour each started, and how it ended; `pause` is `later` with a resume time. */
async function stateWith(runs: string): Promise<OpenState> {
  const open = await openTestState();
  const { state } = open;
  for (const run of runs.split(', ')) {
    const [hours, end] = z.tuple([z.coerce.number(), z.enum(ENDS)]).parse(run.split(' '));
    const now = at(hours);
    await recordStepStart(state, run, 'export', now);
    const outcome = end === 'pause' ? 'later' : end;
    const resumeAt = end === 'pause' ? at(hours + 1) : null;
    if (outcome !== 'running')
      await recordStepEnd(state, run, 'export', { outcome, summary: run, resume_at: resumeAt, now });
  }
  return open;
}

const ENDS = ['done', 'failed', 'later', 'pause', 'interrupted', 'running'] as const;

it.each([
  ['0 done, 1 later, 9 later, 25 later'],
  ['0 later, 1 done, 300 later'],
  ['0 later, 25 interrupted, 26 running'],
  ['0 pause, 200 pause, 400 pause'],
  ['0 later, 1 pause, 30 later, 31 pause, 60 later'],
])('no outage: %s', async (runs) => {
  expect(readOutages((await stateWith(runs)).state, at(1000))).toEqual([]);
});

it.each([
  ['0 done, 1 failed, 2 failed', { since: 1, words: '2 failed' }],
  ['1 failed, 2 done, 3 done', { since: 1, words: '1 failed', over: 2 }],
  ['0 done, 1 later, 9 later, 26 later', { since: 1, words: '26 later' }],
  ['0 later, 300 later, 600 later', { since: 0, words: '600 later' }],
  ['0 later, 9 interrupted, 10 running, 25 later', { since: 0, words: '25 later' }],
  ['0 later, 23 pause, 24 later, 49 later', { since: 24, words: '49 later' }],
  ['0 later, 25 later, 26 pause, 27 later', { since: 0, words: '25 later' }],
  ['0 failed, 1 later, 30 later', { since: 0, words: '30 later' }],
  ['0 later, 25 later, 26 failed', { since: 0, words: '26 failed' }],
  ['0 later, 10 failed, 40 later', { since: 10, words: '40 later' }],
  ['0 later, 25 later, 26 done', { since: 0, words: '25 later', over: 26 }],
  ['0 later, 25 later, 26 done, 27 later, 51 later', { since: 0, words: '25 later', over: 26 }],
  // A success dated by a wrong clock.
  ['0 failed, 1 failed, 2000 done', { since: 0, words: '1 failed' }],
  ['0 failed, 1 done, 2 later, 27 later', { since: 2, words: '27 later' }],
])('an outage: %s', async (runs, { since, words, over }: { since: number; words: string; over?: number }) => {
  const outages = readOutages((await stateWith(runs)).state, at(1000));
  const seen = outages.map((outage) => ({
    ...{ step: outage.step, words: outage.words, since: inHours(outage.since) },
    over: outage.over_at === null ? undefined : inHours(outage.over_at),
  }));
  expect(seen).toEqual([{ step: 'export', words, since, over }]);
});

it('the last run of a step is not one that a wrong clock dated in the future, and its failures are those since it succeeded', async () => {
  const { state } = await stateWith('0 failed, 1 done, 2 failed, 2000 done');
  expect(readLastRuns(state, at(1000))).toMatchObject([
    { outcome: 'failed', started_at: at(2), done_at: at(1), failures: 1 },
  ]);
});

it('a run that a killed process left is interrupted from the next worker on', async () => {
  const { state, worker } = await stateWith('0 done, 1 running');
  await recover(state, worker, at(2));
  expect(readLastRuns(state, at(1000))).toMatchObject([
    { outcome: 'interrupted', done_at: at(0), summary: 'the process was killed' },
  ]);
});

it('old runs are deleted once there are many, except those since the latest success of a step', async () => {
  const { state, worker } = await openTestState();
  const counts = z.object({ step: z.string(), runs: z.int(), first: z.string() });
  const count = () =>
    state.all(
      'SELECT step, count(*) AS runs, min(run) AS first FROM runs GROUP BY step ORDER BY step',
      counts,
    );
  const add = (step: string, runs: number, outcome: string) =>
    state.transaction(() => {
      for (let number = 0; number < runs; number++)
        state.run(
          'INSERT INTO runs (run, step, started_at, outcome) VALUES ($run, $step, $startedAt, $outcome)',
          {
            run: String(number).padStart(5, '0'),
            step,
            startedAt: addMinutes(NOW, number - runs),
            outcome,
          },
        );
    });
  await add('poll', 7_000, 'done');
  await add('export', 3_000, 'failed');
  await recover(state, worker, NOW);
  expect(count()).toMatchObject([{ runs: 3_000 }, { runs: 7_000 }]);

  await add('report', 1, 'done');
  const outages = readOutages(state, NOW);
  await recover(state, worker, NOW);
  expect(count()).toEqual([
    // It never succeeded: its outage began with the first of them.
    { step: 'export', runs: 3_000, first: '00000' },
    { step: 'poll', runs: 1_000, first: '06000' },
    { step: 'report', runs: 1, first: '00000' },
  ]);
  expect(outages).toMatchObject([{ step: 'export', since: addMinutes(NOW, -3_000) }]);
  expect(readOutages(state, NOW)).toEqual(outages);
});
