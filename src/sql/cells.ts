import type { Json } from '@duckdb/node-api';
import type { AnswerColumn } from './answer.js';

/** A value as text; nested values as JSON, NULL as nothing. */
export const textOf = (value: Json): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);

/** A value as people read it: no long tails of digits, and never fewer than stand before the point. */
export function shortText(value: Json, { isNumeric }: AnswerColumn): string {
  if (!isNumeric || typeof value !== 'number' || Number.isInteger(value)) return textOf(value);
  return String(Number(Math.abs(value) < 1000 ? value.toPrecision(4) : value.toFixed(1)));
}

/**
 * A cell of CSV (RFC 4180). Text that a spreadsheet would run as a formula is guarded by an apostrophe: a path is
 * whatever a visitor typed.
 */
export function csvCell(value: Json, { isNumeric }: AnswerColumn): string {
  const text = textOf(value);
  const guarded = !isNumeric && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

/** Decimals come as text: JSON numbers, where they can be held exactly. */
export function jsonValue(value: Json, { isNumeric }: AnswerColumn): Json {
  if (!isNumeric || typeof value !== 'string') return value;
  const number = Number(value);
  return Number.isNaN(number) || (Number.isInteger(number) && !Number.isSafeInteger(number)) ? value : number;
}
