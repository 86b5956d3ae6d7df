import { expect, test } from 'vitest';
import { fullHistory } from './full-history.js';
import { prepare } from './prepare.js';

const keysIn = (value: unknown): string[] => {
  if (typeof value !== 'object' || value === null) return [];
  const own = Array.isArray(value) ? [] : Object.keys(value);
  return [...own, ...Object.values(value).flatMap(keysIn)];
};

test.each(['weekly', 'improve'])('the JSON of %s has keys in camelCase, in every section', async (name) => {
  const history = await fullHistory();
  const report = await prepare({ reader: history.reader, name });
  const json: unknown = JSON.parse(report.json());
  expect(json).toMatchObject({ report: name, project: { siteUrl: null }, period: { name: '2026-W46' } });
  const keys = keysIn(json);
  expect(keys).toContain(name === 'weekly' ? 'daysLoaded' : 'newlyFlagged');
  expect(keys.filter((key) => !/^[a-z][a-zA-Z0-9]*$/.test(key))).toEqual([]);
});
