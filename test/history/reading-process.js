// Reads a history as any program may: one question after another until standard input ends, and one more. With `once` it
// keeps the file open; otherwise it opens it for each question. At its end it writes what it found as JSON. JavaScript,
// since twenty of them start at once.
import process from 'node:process';
import { setTimeout } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';

const [file = '', how = '', question = ''] = process.argv.slice(2);
/** @type {string[]} */
const faults = [];
/** @type {number[]} */
const days = [];
let hasEnded = false;
process.stdin.resume().on('end', () => {
  hasEnded = true;
});

const open = () => DuckDBInstance.create(file, { access_mode: 'READ_ONLY', threads: '1' });

/** @param {DuckDBInstance} instance */
async function ask(instance) {
  const connection = await instance.connect();
  const [row = {}] = (await connection.runAndReadAll(question)).getRowObjects();
  connection.closeSync();
  const found = Number(row['days']);
  if (row['days'] !== row['days_viewed'] || row['loaded'] !== row['viewed'])
    faults.push(`rows and days differ: ${JSON.stringify(row)}`);
  if (found < (days.at(-1) ?? 0)) faults.push(`${days.at(-1)} days, and then ${found}`);
  if (days.length === 0) process.stdout.write('reading\n');
  if (found !== days.at(-1)) days.push(found);
}

const kept = how === 'once' ? await open() : undefined;
for (let isLast = false; !isLast && faults.length < 10;) {
  isLast = hasEnded;
  try {
    const instance = kept ?? (await open());
    await ask(instance);
    if (kept === undefined) instance.closeSync();
    // Exports get the processor time in between.
    await setTimeout(10);
  } catch (error) {
    faults.push(String(error));
  }
}
process.stdout.write(JSON.stringify({ days, faults }));
process.exit();
