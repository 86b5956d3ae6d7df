import { addMinutes } from 'date-fns';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { pruneRuns, readOutages } from '../../src/steps/runs.js';
import { liveWarehouse } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

it('old runs are deleted once there are many, except those since the latest success of a step', async () => {
  const warehouse = await liveWarehouse();
  const count = async () =>
    warehouse.query(
      'SELECT step, count(*) AS runs, min(run) AS first FROM runs GROUP BY step ORDER BY step',
      z.object({ step: z.string(), runs: z.int(), first: z.string() }),
    );
  const add = (step: string, runs: number, outcome: string) =>
    warehouse.transaction((transaction) =>
      transaction.execute(
        "INSERT INTO runs BY NAME SELECT format('{:05d}', range) AS run, $step AS step, $now::TIMESTAMP - to_minutes($runs::BIGINT - range) AS started_at, $outcome AS outcome FROM range($runs::BIGINT)",
        { step, runs, outcome, now: NOW },
      ),
    );
  await add('poll', 7_000, 'done');
  await add('export', 3_000, 'failed');
  await pruneRuns(warehouse);
  expect(await count()).toMatchObject([{ runs: 3_000 }, { runs: 7_000 }]);

  await add('report', 1, 'done');
  const outages = await readOutages(warehouse, NOW);
  await pruneRuns(warehouse);
  expect(await count()).toEqual([
    // It never succeeded: its outage began with the first of them.
    { step: 'export', runs: 3_000, first: '00000' },
    { step: 'poll', runs: 1_000, first: '06000' },
    { step: 'report', runs: 1, first: '00000' },
  ]);
  expect(outages).toMatchObject([{ step: 'export', since: addMinutes(NOW, -3_000) }]);
  expect(await readOutages(warehouse, NOW)).toEqual(outages);
});
