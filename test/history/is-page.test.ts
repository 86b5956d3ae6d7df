import { expect, it } from 'vitest';
import { z } from 'zod';
import { pageOf } from '../../src/page.js';
import { closeNow, newStore } from '../open-history.js';
import { AI_FILES, OTHERS, PAGES } from '../page-kinds.js';

it('an address is a page, a file for AI, or neither', async () => {
  const history = await newStore();
  const kindsOf = async (paths: readonly string[]) => {
    const rows = await history.query(
      `SELECT path, is_page(path) AS is_page, is_for_ai(path) AS is_for_ai
       FROM (SELECT unnest(from_json($paths, '["VARCHAR"]')) AS path)`,
      z.object({ path: z.string(), is_page: z.boolean(), is_for_ai: z.boolean() }),
      { paths: JSON.stringify(paths.map(pageOf)) },
    );
    return rows.map((row) => [row.path, row.is_page ? 'page' : row.is_for_ai ? 'for AI' : 'neither']);
  };
  for (const [paths, kind] of [
    [PAGES, 'page'],
    [AI_FILES, 'for AI'],
    [OTHERS, 'neither'],
  ] as const)
    expect(await kindsOf(paths)).toEqual(paths.map((path) => [pageOf(path), kind]));
  await closeNow(history);
});
