import { expect, it } from 'vitest';
import { z } from 'zod';
import { StepRunner } from '../../src/steps/step.js';
import { liveWarehouse } from '../open-warehouse.js';
import { stepContext } from './step-context.js';

it('a step that is stopped and leaves work undone without an error does not count as done', async () => {
  const warehouse = await liveWarehouse();
  const stop = new AbortController();
  const runner = new StepRunner(stepContext(warehouse, { signal: stop.signal }));
  await runner.step('export', () => {
    stop.abort(new Error('told to stop'));
    return Promise.resolve({ detail: [], summary: '0 days loaded' });
  });
  const rows = await warehouse.query('SELECT outcome FROM runs', z.object({ outcome: z.string() }));
  expect(rows).toEqual([{ outcome: 'interrupted' }]);
});

it('work beside the schedule leaves the step due', async () => {
  const warehouse = await liveWarehouse();
  const runner = new StepRunner(stepContext(warehouse));
  const result = { detail: 1, summary: '1 page approved', error: new Error('the reply was lost') };
  expect(await runner.aside('improve', () => Promise.resolve(result))).toBe(1);
  expect(runner.outages).toMatchObject([{ step: 'improve', outcome: 'failed' }]);
  expect(await warehouse.query('SELECT outcome FROM runs', z.looseObject({}))).toEqual([]);
});
