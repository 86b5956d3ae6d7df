const UNIT_MS = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** Milliseconds in a length of time such as `500ms`, `30s`, `2m` or `1h`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,7})\s*([a-z]+)$/.exec(text.trim()) ?? [];
  const unitMs = UNIT_MS.get(unit);
  return amount === undefined || unitMs === undefined ? undefined : Number(amount) * unitMs;
}
