import { addDays as addDaysTo, addMilliseconds, addSeconds } from 'date-fns';
import { expect, it } from 'vitest';
import { readFact, readLimit, recordFact, requestsOf } from '../../src/state/platform.js';
import { newState, NOW } from './new-state.js';
import { FIRST_DAY } from '../../src/export/range.js';
import { KEPT_FROM } from '../../src/export/retention.js';
import { day, startOfDay } from '../../src/day.js';

const MINUTE = 60;

it.each([
  // It is not known when in its minute a request was sent: it counts for an hour after the end of that minute.
  ['at its beginning', 0, 61 * MINUTE],
  ['at its end', 59, 61 * MINUTE],
])(
  'under a limit, a request that was sent in a minute, %s, counts for 61 minutes',
  async (_, sentAt, freeAt) => {
    const { state } = await newState();
    const requests = requestsOf(state, 'key');
    const ask = (at: Date) => requests.count({ sent: 1, refused: 0 }, at, 1);
    expect(await ask(addSeconds(NOW, sentAt))).toBe(1);
    expect(await ask(addMilliseconds(addSeconds(NOW, freeAt), -1))).toBe(0);
    expect(await ask(addSeconds(NOW, freeAt))).toBe(1);
  },
);

it('requests with one key use nothing of the limit of another', async () => {
  const { state } = await newState();
  await requestsOf(state, 'other').count({ sent: 5, refused: 0 }, NOW);
  const ask = () => requestsOf(state, 'key').count({ sent: 1, refused: 0 }, NOW, 1);
  expect(await ask()).toBe(1);
  expect(await ask()).toBe(0);
});

const DAY = day('2026-01-01');

it('a limit of the platform is believed for thirty days, and another fact for good', async () => {
  const { state } = await newState();
  for (const fact of [FIRST_DAY, KEPT_FROM]) await recordFact(state, 'prj_1', fact, DAY, NOW);
  const later = addDaysTo(NOW, 30);
  expect(readFact(state, 'prj_1', KEPT_FROM, later)).toBe(DAY);
  expect(readFact(state, 'prj_1', KEPT_FROM, addMilliseconds(later, 1))).toBeUndefined();
  // It was found with a clock that was ahead.
  expect(readFact(state, 'prj_1', KEPT_FROM, addMilliseconds(NOW, -1))).toBeUndefined();
  expect(readFact(state, 'prj_1', FIRST_DAY, addDaysTo(NOW, 4_000))).toBe(DAY);
});

it('the day from which a limit is not believed anymore is the first day on which it is not', async () => {
  const { state } = await newState();
  await recordFact(state, 'prj_1', KEPT_FROM, DAY, NOW);
  const until = readLimit(state, 'prj_1', KEPT_FROM, NOW)?.until ?? expect.fail('it is not known');
  const readAt = (at: Date) => readFact(state, 'prj_1', KEPT_FROM, at);
  expect(readAt(startOfDay(until))).toBeUndefined();
  expect(readAt(addDaysTo(startOfDay(until), -1))).toBe(DAY);
});
