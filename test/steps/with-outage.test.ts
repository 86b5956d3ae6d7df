import { expect, it } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { withOutage } from '../../src/steps/step.js';
import { NOW } from '../sandbox/open-sandbox.js';

const result = { detail: [], summary: 'nothing' };
const pause = new PausedError('The budget is spent.', NOW);
const failure = new Error('the disk is full');

it.each([
  ['none', [], undefined],
  ['a pause', [pause], pause],
  ['a pause before a failure', [pause, failure], failure],
])('of the errors of a step (%s), the one somebody must fix is reported', (_, errors, reported) => {
  expect(withOutage(result, errors).error).toBe(reported);
});
