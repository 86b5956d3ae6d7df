import { addMilliseconds, addSeconds } from 'date-fns';
import { expect, it } from 'vitest';
import { requestsOf } from '../../src/state/platform.js';
import { newState, NOW } from './new-state.js';

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
