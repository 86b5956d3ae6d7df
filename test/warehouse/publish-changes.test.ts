import fc from 'fast-check';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addDays, day, type Day } from '../../src/day.js';
import { messageOf } from '../../src/errors.js';
import { publish } from '../../src/warehouse/publish.js';
import { openHistory, openOwnHistory } from '../../src/warehouse/published.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { answerOf } from '../duckdb.js';
import { tries } from '../fuzz.js';
import { closeNow, execute, inHistory, liveWarehouse, publishChanges, valuesOf } from '../open-warehouse.js';
import { page, storeLoaded } from './stored-days.js';

const FIRST = day('2026-09-20');
const AT = new Date('2026-11-21T03:00:00Z');

const targetOf = ({ path }: Warehouse, name = 'history.duckdb') => join(dirname(path), name);

/** Removes days, as a person may by hand. */
async function removeDaysFrom(warehouse: Warehouse, first: Day): Promise<void> {
  for (const table of ['page_views', 'day_loads'])
    await execute(warehouse, `DELETE FROM ${table} WHERE project = 'prj_1' AND day >= $first::DATE`, {
      first,
    });
}

/** Stores a day with this many pages, each viewed `human` times. */
function store(warehouse: Warehouse, on: Day, pages: number, human: number, now: Date, project = 'prj_1') {
  const rows = Array.from({ length: pages }, (_, index) => page(`/${index}`, human, 1));
  return storeLoaded(warehouse, { project, day: on, now }, rows, 'provisional');
}

const PLANNED = `INSERT INTO agent_jobs BY NAME SELECT $id AS id, 'prj_1' AS project, '/a' AS path, 'active' AS state, 'read' AS reason, 'Improve' AS prompt, $now::TIMESTAMP AS planned_at, 0 AS polls`;
const planJob = (warehouse: Warehouse, id: number) => execute(warehouse, PLANNED, { id, now: AT });
const poll = (warehouse: Warehouse) =>
  execute(warehouse, 'UPDATE agent_jobs SET polls = polls + 1, next_poll_at = $now::TIMESTAMP', { now: AT });
const end = (warehouse: Warehouse) => execute(warehouse, "UPDATE agent_jobs SET state = 'completed'");

/** A digest of each table of a published history. */
const contentOf = (path: string): Promise<Record<string, unknown>> =>
  inHistory(path, async (history) => {
    const names = await valuesOf(history, 'SELECT table_name FROM duckdb_tables()');
    const digests = names.map(async (name) => {
      const digest = `SELECT count(*) || ' rows: ' || coalesce(bit_xor(hash(row)), 0) FROM ${String(name)} AS row`;
      return [name, ...(await valuesOf(history, digest))] as const;
    });
    return Object.fromEntries(await Promise.all(digests)) as Record<string, unknown>;
  });

const inode = async (path: string) => (await stat(path)).ino;

/** Where a block of a database file begins, after its headers. */
const blockAt = (block: number): number => 3 * 4_096 + block * 256 * 1_024;

describe('publishing what changed', () => {
  it('equals a whole copy, row by row, after any sequence of changes', async () => {
    const change = fc.oneof(
      fc.record({
        kind: fc.constant('store' as const),
        project: fc.constantFrom('prj_1', 'prj_2'),
        day: fc.nat(40),
        pages: fc.nat(4),
        human: fc.nat(3),
      }),
      fc.record({ kind: fc.constant('remove' as const), day: fc.integer({ min: 30, max: 40 }) }),
      fc.record({ kind: fc.constantFrom('job' as const, 'poll' as const, 'end' as const) }),
    );
    const rounds = fc.array(fc.array(change, { maxLength: 6 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(rounds, async (changesOf) => {
        const warehouse = await liveWarehouse();
        // A history large enough that a change is not an eighth of it.
        for (let ago = 0; ago < 30; ago++) await store(warehouse, addDays(FIRST, ago), 9, 1, AT);
        await publish(warehouse, targetOf(warehouse));
        let minutes = 0;
        let jobs = 0;
        for (const changes of changesOf) {
          for (const one of changes) {
            const now = new Date(AT.getTime() + ++minutes * 60_000);
            if (one.kind === 'store')
              await store(warehouse, addDays(FIRST, one.day), one.pages, one.human, now, one.project);
            if (one.kind === 'remove') await removeDaysFrom(warehouse, addDays(FIRST, one.day));
            if (one.kind === 'job') await planJob(warehouse, ++jobs);
            if (one.kind === 'poll') await poll(warehouse);
            if (one.kind === 'end') await end(warehouse);
          }
          await publish(warehouse, targetOf(warehouse));
          await publish(warehouse, targetOf(warehouse, 'whole.duckdb'), { isWhole: true });
          expect(await contentOf(targetOf(warehouse))).toEqual(
            await contentOf(targetOf(warehouse, 'whole.duckdb')),
          );
        }
        await closeNow(warehouse);
      }),
      tries(15),
    );
  });

  it('does nothing if a reader would see no difference', async () => {
    const warehouse = await liveWarehouse();
    await store(warehouse, FIRST, 3, 1, AT);
    await planJob(warehouse, 1);
    await publish(warehouse, targetOf(warehouse));
    const before = await inode(targetOf(warehouse));
    // The day is read again and is unchanged, and the job is still running.
    expect(await store(warehouse, FIRST, 3, 1, new Date(AT.getTime() + 1))).toBe('unchanged');
    await poll(warehouse);
    expect(await publishChanges(warehouse, targetOf(warehouse))).toBeUndefined();
    expect(await inode(targetOf(warehouse))).toBe(before);
    expect(await publish(warehouse, targetOf(warehouse))).toBeGreaterThan(0);
    expect(await inode(targetOf(warehouse))).not.toBe(before);
    const settle = () => execute(warehouse, "UPDATE day_loads SET state = 'final'");
    for (const change of [end, settle]) {
      await change(warehouse);
      expect(await publishChanges(warehouse, targetOf(warehouse))).toBeGreaterThan(0);
    }
  });

  it('writes everything again after a damaged publication, and when a quarter has begun', async () => {
    const warehouse = await liveWarehouse();
    for (let ago = 0; ago < 10; ago++) await store(warehouse, addDays(FIRST, ago), 9, 1, AT);
    await writeFile(targetOf(warehouse), 'half a file');
    await publishChanges(warehouse, targetOf(warehouse));
    await store(warehouse, day('2026-09-30'), 1, 1, AT);
    await publishChanges(warehouse, targetOf(warehouse));
    const orderOf = () =>
      inHistory(targetOf(warehouse), (history) =>
        valuesOf(history, 'SELECT path FROM page_views ORDER BY rowid'),
      );
    expect((await orderOf()).at(-1)).toBe('/0');
    await store(warehouse, day('2026-10-01'), 1, 1, AT);
    await publishChanges(warehouse, targetOf(warehouse));
    expect((await orderOf()).slice(-2)).toEqual(['/8', '/0']);
  });

  it('writes everything again if only the views of the last publication are damaged', async () => {
    const warehouse = await liveWarehouse();
    for (let ago = 0; ago < 10; ago++) await store(warehouse, addDays(FIRST, ago), 999, 1, AT);
    const target = targetOf(warehouse);
    await publish(warehouse, target);
    const blocks = await inHistory(target, (history) =>
      valuesOf(
        history,
        "SELECT DISTINCT block_id::INTEGER FROM pragma_storage_info('page_views') WHERE block_id >= 0",
      ),
    );
    await chmod(target, 0o600);
    const bytes = await readFile(target);
    for (const block of blocks) bytes.fill(0xff, blockAt(Number(block)) + 4_096, blockAt(Number(block) + 1));
    await writeFile(target, bytes);
    await store(warehouse, FIRST, 3, 2, new Date(AT.getTime() + 1));
    expect(await publishChanges(warehouse, target)).toBeGreaterThan(0);
    await publish(warehouse, targetOf(warehouse, 'whole.duckdb'), { isWhole: true });
    expect(await contentOf(target)).toEqual(await contentOf(targetOf(warehouse, 'whole.duckdb')));
  });

  const OWN = '"my ""own"" notes"';

  it('follows a table that a user adds to the live database, changes and drops', async () => {
    const warehouse = await liveWarehouse();
    await store(warehouse, FIRST, 9, 1, AT);
    await publishChanges(warehouse, targetOf(warehouse));
    const publishedAfter = async (sql: string) => {
      await warehouse.exclusive((connection) => connection.run(sql));
      await publishChanges(warehouse, targetOf(warehouse));
      return inHistory(targetOf(warehouse), (history) => valuesOf(history, `FROM ${OWN}`)).catch(messageOf);
    };
    expect(await publishedAfter(`CREATE TABLE ${OWN} AS SELECT 1 AS note`)).toEqual([1]);
    expect(await publishedAfter(`INSERT INTO ${OWN} VALUES (2)`)).toEqual([1, 2]);
    const wider = await publishedAfter(`ALTER TABLE ${OWN} ADD COLUMN author VARCHAR`);
    expect(wider).toEqual([1, null, 2, null]);
    expect(await publishedAfter(`DROP TABLE ${OWN}`)).toContain('does not exist');
  });

  it('is redone after a kill between any two of its steps, and readers see the previous state until then', async () => {
    const warehouse = await liveWarehouse();
    for (let ago = 0; ago < 30; ago++) await store(warehouse, addDays(FIRST, ago), 9, 1, AT);
    const target = targetOf(warehouse);
    await publish(warehouse, target);
    let minutes = 0;
    const change = () => store(warehouse, FIRST, 9, 2 + minutes, new Date(AT.getTime() + ++minutes * 60_000));
    const published = await readFile(target);
    const unfinished = `${target}.publishing`;
    /** What a kill leaves behind after each step. */
    const left: Record<string, () => Promise<unknown>> = {
      'while it was copied': () => writeFile(unfinished, published.subarray(0, published.length / 3)),
      'once it was copied': () => writeFile(unfinished, published),
      'while the days were replaced': async () => {
        await writeFile(unfinished, published);
        await writeFile(`${unfinished}.wal`, published.subarray(0, 999));
      },
      'once it could only be read': () => writeFile(unfinished, published, { mode: 0o444 }),
    };
    for (const [when, leave] of Object.entries(left)) {
      await change();
      const before = await contentOf(target);
      await leave();
      expect(await contentOf(target), when).toEqual(before);
      expect(await publishChanges(warehouse, target), when).toBeGreaterThan(0);
      await publish(warehouse, targetOf(warehouse, 'whole.duckdb'), { isWhole: true });
      expect(await contentOf(target), when).toEqual(await contentOf(targetOf(warehouse, 'whole.duckdb')));
      const names = await readdir(dirname(target));
      expect(
        names.filter((name) => name.includes('.publishing')),
        when,
      ).toEqual([]);
    }
  });

  it('replaces what another version published, which only its own queries can read until then', async () => {
    const warehouse = await liveWarehouse();
    await store(warehouse, FIRST, 3, 1, AT);
    await publish(warehouse, targetOf(warehouse));
    await chmod(targetOf(warehouse), 0o600);
    const older = ['DROP MACRO TABLE usual_range', "COMMENT ON TABLE schema_version IS 'of 0.1.0'"];
    await answerOf(targetOf(warehouse), ...older);
    await expect(openOwnHistory(targetOf(warehouse))).rejects.toThrow(
      /^Another version.*readership publish$/,
    );
    (await openHistory(targetOf(warehouse))).close();
    expect(await publishChanges(warehouse, targetOf(warehouse))).toBeGreaterThan(0);
    (await openOwnHistory(targetOf(warehouse))).close();
  });
});
