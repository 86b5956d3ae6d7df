// A reader of the published history, as any program may be: it asks one question after another without a break, until its
// standard input ends, and then one more. With `once` it opens the file once and keeps it open, otherwise anew for every question. What it
// found it then writes as JSON.
import { DuckDBInstance } from '@duckdb/node-api';

/** Of one snapshot: days that are loaded, and whether rows and ledger say the same. */
const QUESTION = `
  SELECT
    (SELECT count(*) FROM day_loads)::INTEGER AS days,
    (SELECT count(DISTINCT day) FROM page_views)::INTEGER AS days_viewed,
    (SELECT sum(total) FROM day_loads)::DOUBLE AS loaded,
    (SELECT sum(total) FROM page_views)::DOUBLE AS viewed`;

const [file = '', how = ''] = process.argv.slice(2);
const faults: string[] = [];
const days: number[] = [];
let questions = 0;
const end = new AbortController();
process.stdin.resume().on('end', () => {
  end.abort();
});

const open = () => DuckDBInstance.create(file, { access_mode: 'READ_ONLY', threads: '1' });

async function ask(instance: DuckDBInstance): Promise<void> {
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
  isLast = end.signal.aborted;
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
