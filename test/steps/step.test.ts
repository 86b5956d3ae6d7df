import { expect, it } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { StepRunner, withOutage } from '../../src/steps/step.js';
import { liveWarehouse, valuesOf } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { partsOf } from './parts-of.js';

it('a step that is stopped and leaves work undone without an error does not count as done', async () => {
  const warehouse = await liveWarehouse();
  const stop = new AbortController();
  const runner = new StepRunner(partsOf(warehouse, { session: { signal: stop.signal } }));
  await runner.step('export', () => {
    stop.abort(new Error('told to stop'));
    return Promise.resolve({ detail: [], summary: '0 days loaded' });
  });
  expect(await valuesOf(warehouse, 'SELECT outcome FROM runs')).toEqual(['interrupted']);
});

it('a step that throws is recorded with its message alone', async () => {
  const warehouse = await liveWarehouse();
  const runner = new StepRunner(partsOf(warehouse));
  await runner.step('export', () => Promise.reject(new Error('the server is down')));
  expect(await valuesOf(warehouse, 'SELECT summary FROM runs')).toEqual(['the server is down']);
});

it('work beside the schedule leaves the step due', async () => {
  const warehouse = await liveWarehouse();
  const runner = new StepRunner(partsOf(warehouse));
  const result = { detail: 1, summary: '1 page approved', error: new Error('the reply was lost') };
  expect(await runner.aside('improve', () => Promise.resolve(result))).toBe(1);
  expect(runner.outages).toMatchObject([{ step: 'improve', outcome: 'failed' }]);
  expect(await valuesOf(warehouse, 'SELECT outcome FROM runs')).toEqual([]);
});

const pause = new PausedError('The budget is spent.', NOW);
const failure = new Error('the disk is full');

it.each([
  ['none', [undefined], undefined],
  ['a pause', [undefined, pause], pause],
  ['a pause before a failure', [pause, failure], failure],
])('of the errors of a step (%s), the one somebody must fix is reported', (_, errors, reported) => {
  expect(withOutage({ detail: [], summary: 'nothing' }, errors).error).toBe(reported);
});
