import { expect, it } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { withFaults } from '../../src/steps/runner.js';
import { NOW } from '../sandbox/open-sandbox.js';

const result = { detail: [], summary: 'nothing', changed: false };
const pause = new PausedError('The budget is spent.', NOW);
const failure = new Error('the disk is full');

it.each([
  ['none', [], undefined],
  ['a pause', [pause], pause],
  ['a pause before a failure', [pause, failure], failure],
])('of the faults of a step (%s), the one somebody must fix is reported', (_, faults, told) => {
  expect(withFaults(result, faults).fault).toBe(told);
});
