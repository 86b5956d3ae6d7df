import { expect, it } from 'vitest';
import { z } from 'zod';
import { reasonOf, wordsOf } from '../../src/agents/reasons.js';
import { databaseOf010 } from '../database-of-010.js';
import { liveWarehouse } from '../open-warehouse.js';

/** A live database as 0.1.0 left it, with one choice. */
const withChoice = (why: string, isFlagged: boolean) =>
  databaseOf010(async (connection) => {
    await connection.run(
      "INSERT INTO page_choices VALUES ('p', '/0', TIMESTAMP '2026-11-16', $isFlagged, $why, 1204, 870)",
      { why, isFlagged },
    );
  });

const FLAGGED =
  'number 2 in sustained reading, with 1,204 human views (number 5) and 870 AI views (number 1) in a median week of the last 8; ';
const NOW =
  '#2 in sustained traffic, with 1,204 human views (#5) and 870 AI views (#1) in a median week of the last 8; ';

it.each([
  [
    'flagged',
    `${FLAGGED}+12% over the 4 weeks before, 0.7 AI views for each human one`,
    `${NOW}+12% compared with the 4 weeks before, 0.7 AI views per human view`,
  ],
  [
    'flagged',
    `${FLAGGED}−1,234% over the 4 weeks before, 0.7 AI views for each human one`,
    `${NOW}−1,234% compared with the 4 weeks before, 0.7 AI views per human view`,
  ],
  ['flagged', `${FLAGGED}steady, read by AI alone`, `${NOW}steady, viewed only by AI`],
  [
    'flagged',
    `${FLAGGED}read only lately, 0.7 AI views for each human one`,
    `${NOW}viewed only recently, 0.7 AI views per human view`,
  ],
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
  [
    'limit',
    'waits for a later run: improve.maxJobsPerWeek is 5',
    'left for a later run: improve.maxJobsPerWeek is 5',
  ],
  ['other', 'some other sentence'],
])('a choice that 0.1.0 stored becomes %s: %s', async (code, why, words = why) => {
  const warehouse = await liveWarehouse(await withChoice(why, code === 'flagged'));
  const row = z.object({ code: z.string(), facts: z.string(), is_flagged: z.boolean() });
  const [choice] = await warehouse.query('SELECT code, facts, is_flagged FROM page_choices', row);
  expect(choice).toMatchObject({ code, is_flagged: code === 'flagged' });
  expect(choice && wordsOf(reasonOf(choice))).toBe(words);
});
