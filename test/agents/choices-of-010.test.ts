import { DuckDBInstance } from '@duckdb/node-api';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { reasonOf, wordsOf } from '../../src/agents/reasons.js';
import { liveWarehouse } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';

const MIGRATIONS_OF_010 = ['001_history', '002_runs', '003_agents', '004_requests', '005_deliveries'];

/** A live database as 0.1.0 left it, with these choices. */
async function databaseOf010(choices: readonly (readonly [why: string, isFlagged: boolean])[]) {
  const path = join(await tempDir(), 'warehouse.duckdb');
  const instance = await DuckDBInstance.create(path, { storage_compatibility_version: 'v1.4.0' });
  const connection = await instance.connect();
  await connection.run('CREATE TABLE schema_version (version INTEGER NOT NULL)');
  for (const [index, name] of MIGRATIONS_OF_010.entries()) {
    const file = new URL(`../../src/warehouse/migrations/${name}.sql`, import.meta.url);
    await connection.run(await readFile(file, 'utf8'));
    await connection.run('INSERT INTO schema_version VALUES ($version)', { version: index + 1 });
  }
  for (const [index, [why, isFlagged]] of choices.entries())
    await connection.run(
      "INSERT INTO page_choices VALUES ('p', $path, TIMESTAMP '2026-11-16', $isFlagged, $why, 1204, 870)",
      { path: `/${index}`, why, isFlagged },
    );
  connection.closeSync();
  instance.closeSync();
  return path;
}

const FLAGGED =
  'number 2 in sustained reading, with 1,204 human views (number 5) and 870 AI views (number 1) in a median week of the last 8; ';

it.each([
  ['flagged', `${FLAGGED}+12% over the 4 weeks before, 0.7 AI views for each human one`],
  ['flagged', `${FLAGGED}−1,234% over the 4 weeks before, 0.7 AI views for each human one`],
  ['flagged', `${FLAGGED}steady, read by AI alone`],
  ['flagged', `${FLAGGED}read only lately, 0.7 AI views for each human one`],
  [
    'not-plain',
    'not a plain path, so it cannot be put into a prompt',
    'not a plain path, so it cannot go into a prompt',
  ],
  ['excluded', 'excluded by improve.exclude'],
  ['not-in-sitemap', 'not in the sitemap'],
  ['few-days', 'viewed on 13 days only', 'viewed on only 13 days'],
  ['few-days-by-people', 'viewed by people on 6 days only', 'viewed by people on only 6 days'],
  ['has-job', 'has job 4, active'],
  [
    'had-job',
    'had job 12, ended 2026-11-16: less than 56 days ago',
    'had job 12, which ended on 2026-11-16, less than 56 days ago',
  ],
  ['limit', 'waits for a later run: improve.maxJobsPerWeek is 5'],
  ['other', 'some other sentence'],
])('a choice that 0.1.0 stored becomes %s: %s', async (code, why, words = why) => {
  const warehouse = await liveWarehouse(await databaseOf010([[why, code === 'flagged']]));
  const row = z.object({ code: z.string(), facts: z.string(), is_flagged: z.boolean() });
  const [choice] = await warehouse.query('SELECT code, facts, is_flagged FROM page_choices', row);
  expect(choice).toMatchObject({ code, is_flagged: code === 'flagged' });
  expect(choice && wordsOf(reasonOf(choice))).toBe(words);
});
