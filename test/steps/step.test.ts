import { expect, it } from 'vitest';
import { z } from 'zod';
import { PausedError } from '../../src/api/errors.js';
import { type Session, StepRunner, withOutage } from '../../src/steps/step.js';
import { openTestState } from '../open-state.js';
import { newStore } from '../open-history.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { partsOf } from './parts-of.js';

/** A runner of steps, and what the state has of its runs in one column. */
async function openRunner(column: 'outcome' | 'summary', session: Partial<Session> = {}) {
  const { state } = await openTestState();
  const runner = new StepRunner(partsOf(await newStore(), { state, session }));
  const runs = () => state.all(`SELECT ${column} AS value FROM runs`, z.object({ value: z.string() }));
  return { runner, runs: () => runs().map(({ value }) => value) };
}

it('a step that is stopped and leaves work undone without an error does not count as done', async () => {
  const stop = new AbortController();
  const { runner, runs } = await openRunner('outcome', { signal: stop.signal });
  await runner.step('export', () => {
    stop.abort(new Error('told to stop'));
    return Promise.resolve({ detail: [], summary: '0 days loaded' });
  });
  expect(runs()).toEqual(['interrupted']);
});

it('a step that throws is recorded with its message alone', async () => {
  const { runner, runs } = await openRunner('summary');
  await runner.step('export', () => Promise.reject(new Error('the server is down')));
  expect(runs()).toEqual(['the server is down']);
});

it('work beside the schedule leaves the step due', async () => {
  const { runner, runs } = await openRunner('outcome');
  const result = { detail: 1, summary: '1 page approved', error: new Error('the reply was lost') };
  expect(await runner.aside('improve', () => Promise.resolve(result))).toBe(1);
  expect(runner.outages).toMatchObject([{ step: 'improve', outcome: 'failed' }]);
  expect(runs()).toEqual([]);
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
