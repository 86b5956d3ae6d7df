import { addMilliseconds, addMinutes } from 'date-fns';
import { describe, expect, test } from 'vitest';
import {
  BLOCK_LIFE_MS,
  finishingAt,
  freeAt,
  type HourState,
  hourState,
  type LedgerRow,
  nextFreeAt,
  usedRequests,
} from '../../src/budget/hour.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const minutesAgo = (minutes: number) => addMinutes(NOW, -minutes);
const block = (usedAt: Date, requests: number): LedgerRow => ({
  used_at: usedAt,
  requests,
  paused_until: null,
});
const pause = (until: Date): LedgerRow => ({ used_at: NOW, requests: 0, paused_until: until });

describe('what counts', () => {
  test('a block counts for an hour after the last moment at which one of its requests can arrive', () => {
    const spentLast = addMilliseconds(NOW, BLOCK_LIFE_MS);
    expect(freeAt(NOW).getTime()).toBeGreaterThan(addMinutes(spentLast, 60).getTime());
    const rows = [block(NOW, 10)];
    expect(usedRequests(hourState(rows, addMilliseconds(freeAt(NOW), -1)))).toBe(10);
    expect(usedRequests(hourState(rows, freeAt(NOW)))).toBe(0);
  });

  test('a clock set back by minutes frees nothing: what lies in the future counts as if it were fresh', () => {
    const state = hourState([block(addMinutes(NOW, 20), 10)], NOW);
    expect(usedRequests(state)).toBe(10);
    expect(nextFreeAt(state, 10, 1, NOW)).toEqual(freeAt(NOW));
  });

  test('a clock that was days ahead does not stop the export for days', () => {
    const ahead = addMinutes(NOW, 3 * 24 * 60);
    const state = hourState([block(ahead, 100), { ...pause(addMinutes(ahead, 60)), used_at: ahead }], NOW);
    expect(state).toEqual({ uses: [], pausedUntil: undefined });
  });

  test('of several pauses the longest holds, and one that is over does not', () => {
    const rows = [pause(addMinutes(NOW, 5)), pause(addMinutes(NOW, 30)), pause(minutesAgo(1))];
    expect(hourState(rows, NOW).pausedUntil).toEqual(addMinutes(NOW, 30));
    expect(hourState(rows, addMinutes(NOW, 30)).pausedUntil).toBeUndefined();
  });
});

describe('the next free request', () => {
  const state = hourState([block(minutesAgo(50), 60), block(minutesAgo(10), 40)], NOW);

  test('is free now while there is room', () => {
    expect(nextFreeAt(state, 101, 1, NOW)).toEqual(NOW);
  });

  test('waits for the earliest block that makes enough room, whatever order the ledger has', () => {
    const turned = { ...state, uses: [...state.uses].reverse() };
    expect(nextFreeAt(turned, 100, 1, NOW)).toEqual(freeAt(minutesAgo(50)));
    expect(nextFreeAt(turned, 100, 60, NOW)).toEqual(freeAt(minutesAgo(50)));
    expect(nextFreeAt(turned, 100, 61, NOW)).toEqual(freeAt(minutesAgo(10)));
  });

  test('waits longer when the limit was lowered below what is used', () => {
    expect(nextFreeAt(state, 30, 1, NOW)).toEqual(freeAt(minutesAgo(10)));
  });

  test('waits for the end of a pause that lasts longer', () => {
    const until = addMinutes(NOW, 90);
    expect(nextFreeAt({ ...state, pausedUntil: until }, 100, 1, NOW)).toEqual(until);
  });
});

/** Sends one request at a time, each as early as the rolling hour allows. */
function simulate({ uses, pausedUntil }: HourState, limit: number, requests: number): Date {
  const frees = uses.flatMap((use) => Array.from({ length: use.requests }, () => use.freeAt.getTime()));
  let at = (pausedUntil ?? NOW).getTime();
  for (let sent = 0; sent < requests; sent++) {
    const counted = () => frees.filter((free) => free > at);
    while (counted().length >= limit) at = Math.min(...counted());
    frees.push(freeAt(new Date(at)).getTime());
  }
  return new Date(at);
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test('the finishing time is that of sending each request as early as it may be, for any ledger', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seeded(seed);
    const below = (bound: number) => Math.floor(random() * bound);
    const rows = Array.from({ length: below(6) }, () => block(minutesAgo(below(70)), below(15)));
    if (random() < 0.3) rows.push(pause(addMinutes(NOW, below(90))));
    const state = hourState(rows, NOW);
    const limit = 1 + below(30);
    const requests = below(80);
    expect(finishingAt(state, limit, requests, NOW), `seed ${seed}`).toEqual(
      requests === 0 ? (state.pausedUntil ?? NOW) : simulate(state, limit, requests),
    );
  }
});
