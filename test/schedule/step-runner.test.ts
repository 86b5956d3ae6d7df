import { expect, it } from 'vitest';
import { z } from 'zod';
import { settingsSchema } from '../../src/config/schema.js';
import type { StepContext } from '../../src/schedule/context.js';
import { StepRunner } from '../../src/schedule/loop.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';

const unused = (): never => {
  throw new Error('no step of this test needs it');
};

it('a step that is told to stop, and leaves the rest undone without a fault, is not taken for done', async () => {
  const warehouse = await liveWarehouse();
  const stop = new AbortController();
  const settings = settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] });
  const context: StepContext = {
    ...{ settings, projects: settings.projects, warehouse, workspaceDir: undefined },
    ...{ lakeDir: undefined, shard: undefined },
    ...{
      historyFile: '',
      reportsDir: '',
      clientOf: unused,
      transport: unused,
      returnUnused: unused,
      observer: {},
    },
    ...{ now: () => new Date('2026-11-18T05:00:00Z'), signal: stop.signal },
  };
  const runner = new StepRunner(context);
  await runner.step('export', () => {
    stop.abort(new Error('told to stop'));
    return Promise.resolve({ detail: [], summary: '0 days loaded', changed: false });
  });
  const rows = await warehouse.query('SELECT outcome FROM runs', z.object({ outcome: z.string() }));
  expect(rows).toEqual([{ outcome: 'interrupted' }]);
  await closeNow(warehouse);
});
