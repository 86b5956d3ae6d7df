import { expect, it } from 'vitest';
import { z } from 'zod';
import { askingOnce } from '../../src/history/duckdb.js';
import { execute, newStore } from '../open-history.js';

it('a reader that asks once repeats an answer, and asks again with other parameters', async () => {
  const history = await newStore();
  const reader = askingOnce(history);
  const paths = (project: string) =>
    reader.query('SELECT path FROM page_views WHERE project = $project', z.object({ path: z.string() }), {
      project,
    });
  expect(await paths('prj_1')).toEqual([]);
  await execute(
    history,
    "INSERT INTO page_views VALUES ('prj_1', '2026-11-01', '/a', '/a', 1, 1, 2), ('prj_2', '2026-11-01', '/b', '/b', 1, 1, 2)",
  );
  expect(await paths('prj_1')).toEqual([]);
  expect(await paths('prj_2')).toEqual([{ path: '/b' }]);
});
