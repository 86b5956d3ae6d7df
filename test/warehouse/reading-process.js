// Reads the published history as any program may: one question after another until standard input
// ends, and one more. With `once` it keeps the file open; otherwise it opens it for each question.
// At its end it writes what it found as JSON. JavaScript, since twenty of them start at once.
import process from 'node:process';
import { DuckDBInstance } from '@duckdb/node-api';

/** Of one snapshot: days that are loaded, and whether rows and ledger say the same. */
const QUESTION = `
  SELECT
    (SELECT count(*) FROM day_loads)::INTEGER AS days,
    (SELECT count(DISTINCT day) FROM page_views)::INTEGER AS days_viewed,
    (SELECT sum(total) FROM day_loads)::DOUBLE AS loaded,
    (SELECT sum(total) FROM page_views)::DOUBLE AS viewed`;

const [file = '', how = ''] = process.argv.slice(2);
/** @type {string[]} */
const faults = [];
/** @type {number[]} */
const days = [];
let questions = 0;
let hasEnded = false;
process.stdin.resume().on('end', () => {
  hasEnded = true;
});

const open = () => DuckDBInstance.create(file, { access_mode: 'READ_ONLY', threads: '1' });

/** @param {DuckDBInstance} instance */
async function ask(instance) {
  const connection = await instance.connect();
  const [row = {}] = (await connection.runAndReadAll(QUESTION)).getRowObjects();
  connection.closeSync();
  const found = Number(row['days']);
  if (row['days'] !== row['days_viewed'] || row['loaded'] !== row['viewed'])
    faults.push(`rows and ledger differ: ${JSON.stringify(row)}`);
  if (found < (days.at(-1) ?? 0)) faults.push(`${days.at(-1)} days, and then ${found}`);
  if (found !== days.at(-1)) days.push(found);
  if (++questions === 1) process.stdout.write('reading\n');
}

const kept = how === 'once' ? await open() : undefined;
for (let isLast = false; !isLast && faults.length < 10;) {
  isLast = hasEnded;
  try {
    const instance = kept ?? (await open());
    await ask(instance);
    if (kept === undefined) instance.closeSync();
  } catch (error) {
    faults.push(String(error));
  }
}
process.stdout.write(JSON.stringify({ questions, days, faults }));
process.exit();
