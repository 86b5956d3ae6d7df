import { addHours } from 'date-fns';
import { expect, it } from 'vitest';
import { readFaults } from '../../src/schedule/faults.js';
import { recordStepEnd, recordStepStart, type StepOutcome } from '../../src/schedule/runs.js';
import { liveWarehouse } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

/** When a run began, in hours from the first, and how it ended; `pause` is one that knows when to go on. */
type Run = readonly [hours: number, end: StepOutcome | 'pause' | 'running'];

/** The latest fault of exports that ran so, in hours: since when, of which run its words are, and when it was over. */
async function faultOf(runs: readonly Run[]) {
  const warehouse = await liveWarehouse();
  const at = (hours: number) => addHours(NOW, hours);
  const inHours = (instant: Date) => (instant.getTime() - NOW.getTime()) / 3_600_000;
  for (const [hours, end] of runs) {
    await recordStepStart(warehouse, `run ${hours}`, 'export', at(hours));
    if (end === 'running') continue;
    await recordStepEnd(warehouse, `run ${hours}`, 'export', {
      outcome: end === 'pause' ? 'later' : end,
      summary: `${hours}`,
      resume_at: end === 'pause' ? at(hours + 1) : null,
      now: at(hours),
    });
  }
  const faults = await readFaults(warehouse);
  expect(faults.length).toBeLessThanOrEqual(1);
  return faults.map(({ step, words, since, over_at: overAt }) => ({
    ...{ step, words: Number(words), since: inHours(since) },
    over: overAt === null ? undefined : inHours(overAt),
  }))[0];
}

const fault = (since: number, words: number, over?: number) => ({ step: 'export', words, since, over });

const CASES: readonly (readonly [string, readonly Run[], ReturnType<typeof fault> | undefined])[] = [
  [
    'nothing but done',
    [
      [0, 'done'],
      [24, 'done'],
    ],
    undefined,
  ],
  [
    'a failure',
    [
      [0, 'done'],
      [1, 'failed'],
      [2, 'failed'],
    ],
    fault(1, 2),
  ],
  [
    'a failure that is over',
    [
      [1, 'failed'],
      [2, 'done'],
      [3, 'done'],
    ],
    fault(1, 1, 2),
  ],
  [
    'put off for a day',
    [
      [0, 'done'],
      [1, 'later'],
      [9, 'later'],
      [25, 'later'],
    ],
    undefined,
  ],
  [
    'put off for more than a day',
    [
      [0, 'done'],
      [1, 'later'],
      [9, 'later'],
      [26, 'later'],
    ],
    fault(1, 26),
  ],
  [
    'never done, and put off for weeks',
    [
      [0, 'later'],
      [300, 'later'],
      [600, 'later'],
    ],
    fault(0, 600),
  ],
  [
    'put off once, long ago',
    [
      [0, 'later'],
      [1, 'done'],
      [300, 'later'],
    ],
    undefined,
  ],
  [
    'stopped and killed meanwhile',
    [
      [0, 'later'],
      [9, 'interrupted'],
      [10, 'running'],
      [25, 'later'],
    ],
    fault(0, 25),
  ],
  [
    'stopped after a day',
    [
      [0, 'later'],
      [25, 'interrupted'],
      [26, 'running'],
    ],
    undefined,
  ],
  [
    'pauses for weeks',
    [
      [0, 'pause'],
      [200, 'pause'],
      [400, 'pause'],
    ],
    undefined,
  ],
  [
    'put off between pauses',
    [
      [0, 'later'],
      [1, 'pause'],
      [30, 'later'],
      [31, 'pause'],
      [60, 'later'],
    ],
    undefined,
  ],
  [
    'out of reach after a pause',
    [
      [0, 'later'],
      [23, 'pause'],
      [24, 'later'],
      [49, 'later'],
    ],
    fault(24, 49),
  ],
  [
    'a pause while it lasts',
    [
      [0, 'later'],
      [25, 'later'],
      [26, 'pause'],
      [27, 'later'],
    ],
    fault(0, 25),
  ],
  [
    'failed, then put off',
    [
      [0, 'failed'],
      [1, 'later'],
      [30, 'later'],
    ],
    fault(0, 30),
  ],
  [
    'put off, then failed',
    [
      [0, 'later'],
      [25, 'later'],
      [26, 'failed'],
    ],
    fault(0, 26),
  ],
  [
    'failed before a day was over',
    [
      [0, 'later'],
      [10, 'failed'],
      [40, 'later'],
    ],
    fault(10, 40),
  ],
  [
    'out of reach, and over',
    [
      [0, 'later'],
      [25, 'later'],
      [26, 'done'],
    ],
    fault(0, 25, 26),
  ],
  [
    'put off again after it',
    [
      [0, 'later'],
      [25, 'later'],
      [26, 'done'],
      [27, 'later'],
      [51, 'later'],
    ],
    fault(0, 25, 26),
  ],
  [
    'a second time',
    [
      [0, 'failed'],
      [1, 'done'],
      [2, 'later'],
      [27, 'later'],
    ],
    fault(2, 27),
  ],
];

it.each(CASES)('the fault of a step: %s', async (_, runs, expected) => {
  expect(await faultOf(runs)).toEqual(expected);
});
