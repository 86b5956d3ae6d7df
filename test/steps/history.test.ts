import { addHours, addMilliseconds } from 'date-fns';
import { copyFile, rename, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/app/open.js';
import { day } from '../../src/day.js';
import { dayRecords, readDayRuns } from '../../src/export/day-records.js';
import {
  daysToStore,
  futureWords,
  readDays,
  readFutureDays,
  readFutureRecords,
  recallDays,
  rememberDays,
} from '../../src/steps/history.js';
import { afterTest } from '../cleanup.js';
import { storeLoaded } from '../history/stored-days.js';
import { changeHistory, inHistory, newStore } from '../open-history.js';
import { openTestState, stateBeside } from '../open-state.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { addJob } from '../state/new-state.js';
import { tempDir } from '../temp-dir.js';
import { partsOf } from './parts-of.js';

const DAYS = `
  INSERT INTO days BY NAME
  SELECT 'prj_1' AS project, day::DATE AS day, 'final' AS state, day + INTERVAL 4 DAY AS first_loaded_at,
    first_loaded_at AS loaded_at, first_loaded_at AS checked_at, 2 AS human, 1 AS ai, 3 AS total, 1 AS pages, 0 AS unattributed_human,
    0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
  FROM generate_series(DATE '2026-01-01', DATE '2026-11-10', INTERVAL 1 DAY) AS days (day)`;

/** A history of which what is known of its days is remembered. */
async function setUp() {
  const { state } = await openTestState();
  const history = await newStore();
  await history.write();
  const historyFile = history.path;
  /** Changes the history as its next version. */
  const change = async (sql: string) => {
    await history.close();
    await changeHistory(historyFile, sql);
  };
  await change(DAYS);
  const parts = partsOf(history, { state, workspace: { historyFile } });
  const { projects } = parts.workspace;
  await rememberDays(parts);
  const recall = (now = NOW, asked: readonly { readonly id: string }[] = projects) =>
    recallDays({ historyFile, projects: asked as typeof projects }, state, now);
  return { parts, historyFile, change, recall };
}

it('what is remembered of the days is what the history says of them', async () => {
  const { historyFile, recall } = await setUp();
  const known = await recall();
  expect(known).toMatchObject(await inHistory(historyFile, (history) => readDays(history, ['prj_1'], NOW)));
  const records = dayRecords(known?.projects.get('prj_1')?.runs ?? [], []);
  const runs = await inHistory(historyFile, (history) => readDayRuns(history, 'prj_1', day('2020-01-01')));
  const whole = dayRecords(runs, []);
  expect([...records].map(([at, { state }]) => [at, state])).toEqual(
    [...whole].map(([at, { state }]) => [at, state]),
  );
});

it('it is stored with each version that is written, which need not be opened for it', async () => {
  const historyFile = join(await tempDir(), 'history.duckdb');
  const { state, worker } = await stateBeside({ path: historyFile });
  const parts = () => partsOf(history, { state, workspace: { historyFile } });
  const history = openStore({ historyFile }, state, worker, {
    readDays: (next) => daysToStore(parts().workspace, state, next, NOW),
  });
  afterTest(() => history.close());
  const { projects } = parts().workspace;
  for (const days of [['2026-11-01'], ['2026-11-02', '2026-11-03']]) {
    for (const at of days)
      await storeLoaded(history, { project: 'prj_1', day: day(at), now: NOW }, [], 'final');
    await history.write();
    const known = await recallDays({ historyFile, projects }, state, NOW);
    expect(known).toMatchObject(await inHistory(historyFile, (file) => readDays(file, ['prj_1'], NOW)));
  }
});

it('it holds for later days, but not before the time at which it was read, nor for another project', async () => {
  const { recall } = await setUp();
  expect(await recall(new Date('2026-12-24T00:00:00Z'))).toBeDefined();
  expect(await recall(new Date(NOW.getTime() - 1))).toBeUndefined();
  expect(await recall(NOW, [{ id: 'prj_1' }, { id: 'prj_2' }])).toBeUndefined();
});

it('it is forgotten with a history that is written again, restored, touched or lost, until it is read again', async () => {
  const { parts, historyFile, change, recall } = await setUp();
  const again = async () => {
    expect(await recall()).toBeUndefined();
    await rememberDays(parts);
    expect(await recall()).toBeDefined();
  };
  await change("UPDATE days SET human = 3, total = 4 WHERE day = '2026-11-10'");
  await again();
  // A copy of the same size and time is another file.
  await copyFile(historyFile, `${historyFile}.copy`);
  await rename(`${historyFile}.copy`, historyFile);
  await again();
  await utimes(historyFile, NOW, NOW);
  await again();
  await rename(historyFile, `${historyFile}.gone`);
  expect(await recall()).toBeUndefined();
});

it('nothing is remembered of a history with dates in the future', async () => {
  const { parts, change, recall } = await setUp();
  await change("UPDATE days SET loaded_at = '2027-11-10', human = 3, total = 4 WHERE day = '2026-11-10'");
  await rememberDays(parts);
  expect(await recall()).toBeUndefined();
});

describe('a time that a wrong clock stored', () => {
  const AN_HOUR_AHEAD = addHours(NOW, 1);
  const FURTHER_AHEAD = addMilliseconds(AN_HOUR_AHEAD, 1);

  it.each([
    ['step', `INSERT INTO runs VALUES ('r', 'export', '2026', $at, 'done', NULL, NULL)`],
    ['step', `INSERT INTO runs VALUES ('r', 'export', $at, NULL, 'running', NULL, NULL)`],
    ['job', 'UPDATE jobs SET planned_at = $at'],
    ['job', 'UPDATE jobs SET submitted_at = $at'],
    ['job', 'UPDATE jobs SET ended_at = $at'],
    ['job', 'UPDATE jobs SET merged_on = $at'],
    [
      'message',
      `INSERT INTO messages VALUES (1, 'm', 1, 'planned', 'typed', 'Go on', $at, NULL, NULL, NULL)`,
    ],
    ['message', `INSERT INTO messages VALUES (1, 'm', 1, 'sent', 'typed', 'Go on', '2026', 2, $at, NULL)`],
    ['pause', `INSERT INTO prompt_pauses VALUES ('prj_1', $at, '2026', 'a limit')`],
    ['skipped page', `INSERT INTO skips VALUES ('prj_1', '/guide', $at, NULL)`],
    ['pull request', `INSERT INTO pull_requests VALUES (1, $at, '2026', NULL, NULL, NULL)`],
    ['pull request', `INSERT INTO pull_requests VALUES (1, '2026', '2026', $at, NULL, NULL)`],
    ['record of requests', `INSERT INTO requests VALUES ('key', $at, 1, 0)`],
    ['refusal of requests', `INSERT INTO request_limits (key, refused_at) VALUES ('key', $at)`],
    ['check of days', `INSERT INTO verifications VALUES ('prj_1', $at, '2026-11-01', '2026-11-09', 0)`],
    ['failed day', `INSERT INTO day_failures VALUES ('prj_1', '2026-11-09', $at, 'refused', 1)`],
    [
      'fact about the platform',
      `INSERT INTO platform_facts VALUES ('prj_1', 'first day', '"2026-01-01"', $at)`,
    ],
    [
      'email or post',
      `INSERT INTO emails (report, project, period, recipient, state, via, message_id, attempt, attempts, tried_at)
      VALUES ('weekly', 'prj_1', '2026-W46', 'docs@example.com', 'sent', 'smtp', '<a@b>', 2, 1, $at)`,
    ],
  ])('is listed if it is more than an hour ahead: %s, %s', async (kind, sql) => {
    const { state } = await openTestState();
    await addJob(state);
    for (const [at, listed] of [
      [AN_HOUR_AHEAD, []],
      [FURTHER_AHEAD, [{ kind, rows: 1, latest: FURTHER_AHEAD }]],
    ] as const) {
      const stored = state.transaction(() => {
        state.run(sql, { at });
        const found = readFutureRecords(state, NOW);
        expect(found).toEqual(listed);
        throw new Error('rolled back');
      });
      await expect(stored).rejects.toThrow('rolled back');
    }
  });

  it.each([
    ['day', (at: string) => `UPDATE days SET loaded_at = '${at}' WHERE day = '2026-11-10'`],
    ['day', (at: string) => `UPDATE days SET checked_at = '${at}' WHERE day = '2026-11-10'`],
    [
      'restatement',
      (at: string) =>
        `INSERT INTO restatements VALUES ('prj_1', '2026-11-10', '${at}', '2026-11-12', 1, 2, 1, 1, 2, 3, 1)`,
    ],
  ])('is listed if it is more than an hour ahead in the history: %s', async (kind, sql) => {
    const { historyFile, change } = await setUp();
    const found = () => inHistory(historyFile, (history) => readFutureDays(history, NOW));
    await change(sql(AN_HOUR_AHEAD.toISOString().slice(0, -1)));
    expect(await found()).toEqual([]);
    await change(sql(FURTHER_AHEAD.toISOString().slice(0, -1)));
    expect(await found()).toEqual([{ kind, rows: 1, latest: FURTHER_AHEAD }]);
  });

  it('is named by its kind, with the furthest', () => {
    const latest = new Date('2027-01-01T10:00:00Z');
    const words = futureWords([
      { kind: 'job', rows: 1, latest: FURTHER_AHEAD },
      { kind: 'step', rows: 1200, latest },
    ]);
    expect(words).toMatch(/^1 × job and 1,200 × step, up to Jan 1, 2027/);
  });
});
