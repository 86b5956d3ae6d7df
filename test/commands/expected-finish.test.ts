import { expect, it } from 'vitest';
import { finishForecast } from '../../src/service/project-status.js';
import { settingsSchema } from '../../src/config/schema.js';
import { addDays, lastEndedDay } from '../../src/day.js';
import { readDayLedger } from '../../src/export/ledger.js';
import { planExport } from '../../src/export/plan.js';
import { liveWarehouse } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

it('the forecast of a backfill excludes requests reserved for other projects with the same key', async () => {
  const warehouse = await liveWarehouse();
  const last = lastEndedDay(NOW);
  await warehouse.transaction((transaction) =>
    transaction.execute(
      "INSERT INTO day_loads BY NAME SELECT 'big' AS project, $last::DATE AS day, 'final' AS state, $now::TIMESTAMP AS attempted_at, $now::TIMESTAMP AS loaded_at, 2500 AS pages, 0 AS human, 0 AS ai, 0 AS total",
      { last, now: NOW },
    ),
  );
  const finishBeside = async (apiKeyEnv: string) => {
    const { projects, ...settings } = settingsSchema.parse({
      baseUrl: 'https://platform.example.com',
      projects: [{ id: 'small' }, { id: 'big', apiKeyEnv }],
    });
    const [small] = projects;
    if (small === undefined) throw new Error('no project');
    const ledger = await readDayLedger(warehouse, small.id);
    const plan = planExport(ledger, { first: addDays(last, -69), last }, NOW);
    return finishForecast(warehouse, { ...settings, projects }, NOW)(small, plan);
  };
  expect(await finishBeside('ANOTHER_KEY')).toEqual(NOW);
  expect((await finishBeside('READERSHIP_API_KEY')).getTime()).toBeGreaterThan(NOW.getTime());
});
