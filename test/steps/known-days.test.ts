import { copyFile, rename, utimes } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { day } from '../../src/day.js';
import { dayLedger, readDayRuns } from '../../src/export/ledger.js';
import { readDays, recallDays, rememberDays } from '../../src/steps/known-days.js';
import { changeHistory, inHistory, newStore } from '../open-history.js';
import { openTestState } from '../open-state.js';
import { NOW } from '../sandbox/open-sandbox.js';
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
  const ledger = dayLedger(known?.projects.get('prj_1')?.runs ?? [], []);
  const runs = await inHistory(historyFile, (history) => readDayRuns(history, 'prj_1', day('2020-01-01')));
  const whole = dayLedger(runs, []);
  expect([...ledger].map(([at, { state }]) => [at, state])).toEqual(
    [...whole].map(([at, { state }]) => [at, state]),
  );
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
