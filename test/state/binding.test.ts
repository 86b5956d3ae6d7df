import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { State } from '../../src/state/state.js';
import { newState, NOW, valueOf } from './new-state.js';

let state: State;
beforeEach(async () => {
  ({ state } = await newState());
});
const stored = (value: unknown) => valueOf(state, 'SELECT $value', { value });

describe('values that SQLite can hold', () => {
  it.each([
    [true, 1],
    [false, 0],
    [NOW, '2026-11-18T05:00:00.000Z'],
    [null, null],
    ['', ''],
    ['/ü/日本/🦆', '/ü/日本/🦆'],
    [1.5, 1.5],
    [-1, -1],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])('%s is stored as %s', (value, expected) => {
    expect(stored(value)).toBe(expected);
  });

  it('bytes are stored as they are', () => {
    expect(stored(new Uint8Array([0, 255, 7]))).toEqual(new Uint8Array([0, 255, 7]));
  });

  it('text is not cut off at a character that SQLite would end it with, nor where half a character is', () => {
    expect(stored('a\0b')).toBe('a\uFFFDb');
    expect(stored('a\uD800b')).toBe('a\uFFFDb');
  });
});

it.each([
  ['nothing', undefined],
  ['no number', NaN],
  ['infinity', Infinity],
  ['a bigint', 10n],
  ['an object', { a: 1 }],
  ['a list', [1]],
  ['a symbol', Symbol('a')],
  ['a function', () => 1],
  ['an invalid date', new Date(NaN)],
  // It could be stored in a column of integers, and then no row of the table could be read.
  ['2 to the power of 53', 2 ** 53],
  ['a large integer', -(2 ** 60)],
])('%s is refused', async (_, value) => {
  expect(() => stored(value)).toThrow(RangeError);
  const sql = 'UPDATE workspace SET attempt = $value';
  await expect(state.transaction(() => state.run(sql, { value }))).rejects.toThrow(RangeError);
  expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(0);
});

describe('parameters', () => {
  it('one that is missing is refused, and does not keep the value of the call before', () => {
    const row = z.object({ a: z.int(), b: z.int() });
    const sql = 'SELECT $a AS a, $b AS b';
    expect(state.get(sql, row, { a: 1, b: 2 })).toEqual({ a: 1, b: 2 });
    expect(() => state.get(sql, row, { a: 1 })).toThrow('no value for parameter $b');
    expect(() => state.get(sql, row)).toThrow('no value for parameter $a');
  });

  it('one that the statement does not have is ignored', () => {
    expect(valueOf(state, 'SELECT $a', { a: 1, b: 2 })).toBe(1);
  });

  it('may occur twice, and have digits', () => {
    expect(valueOf(state, 'SELECT $a1 + $a1 + $a10', { a1: 1, a10: 10 })).toBe(12);
  });

  it('a name in a comment or a text is none', () => {
    const sql = `-- Of $nobody, :or ? what
      SELECT /* $never
      @ever */ '$.text -- it''s no comment: $neither' || $a`;
    expect(valueOf(state, sql, { a: '!' })).toBe("$.text -- it's no comment: $neither!");
  });

  it.each(['SELECT :a', 'SELECT @a', 'SELECT ?', 'SELECT ?1'])('%s is refused', (sql) => {
    expect(() => valueOf(state, sql, { a: 1 })).toThrow('a parameter is written as $name');
  });
});

it('a row of another shape than expected is refused', () => {
  expect(() => state.get('SELECT 1 AS a', z.object({ a: z.string() }))).toThrow(z.ZodError);
});
