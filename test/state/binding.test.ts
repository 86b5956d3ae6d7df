import { beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import type { State } from '../../src/state/state.js';
import { newState, NOW, valueOf } from './new-state.js';

let state: State;
beforeEach(async () => {
  ({ state } = await newState());
});
const stored = (value: unknown) => valueOf(state, 'SELECT $value', { value });

const BYTES = new Uint8Array([0, 255, 7]);

it.each([
  [true, 1],
  [false, 0],
  [NOW, '2026-11-18T05:00:00.000Z'],
  [null, null],
  ['/ü/日本/🦆', '/ü/日本/🦆'],
  [1.5, 1.5],
  [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [BYTES, BYTES],
  // SQLite would end a text at such a character, and has no half characters.
  ['a\0b', 'a\uFFFDb'],
  ['a\uD800b', 'a\uFFFDb'],
])('%s is stored as %s', (value, expected) => {
  expect(stored(value)).toEqual(expected);
});

it.each([
  ...[undefined, NaN, Infinity, 10n, { a: 1 }, [1], Symbol('a'), () => 1, new Date(NaN)],
  // It could be stored in a column of integers, and then no row of the table could be read.
  ...[2 ** 53, -(2 ** 60)],
])('no value for SQLite is refused: %#', async (value) => {
  expect(() => stored(value)).toThrow(RangeError);
  const sql = 'UPDATE workspace SET attempt = $value';
  await expect(state.transaction(() => state.run(sql, { value }))).rejects.toThrow(RangeError);
  expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(0);
});

it('a parameter that is missing is refused, and does not keep the value of the call before', () => {
  const row = z.object({ a: z.int(), b: z.int() });
  const sql = 'SELECT $a AS a, $b AS b';
  expect(state.get(sql, row, { a: 1, b: 2 })).toEqual({ a: 1, b: 2 });
  expect(() => state.get(sql, row, { a: 1 })).toThrow('no value for parameter $b');
});

it.each([
  ['SELECT $a', 1],
  ['SELECT $a + $a + $a10', 12],
  [
    "SELECT -- Of $nobody, :or ? what\n /* $never\n @ever */ '$.text -- it''s $neither' || $a",
    "$.text -- it's $neither1",
  ],
])('parameters are those that a statement names outside of comments and texts: %s', (sql, value) => {
  expect(valueOf(state, sql, { a: 1, a10: 10 })).toBe(value);
});

it.each(['SELECT :a', 'SELECT @a', 'SELECT ?', 'SELECT ?1'])('%s is refused', (sql) => {
  expect(() => valueOf(state, sql, { a: 1 })).toThrow('a parameter is written as $name');
});

it('a row of another shape than expected is refused', () => {
  expect(() => state.get('SELECT 1 AS a', z.object({ a: z.string() }))).toThrow(z.ZodError);
});
