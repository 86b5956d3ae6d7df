/** Publishes in rounds that change one day each: DATABASE PLACE SHARD ROUNDS DIE_AT; it dies at that change of a file. */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { parseShard } from '../../src/config/shard.js';
import { openWarehouse } from '../../src/warehouse/open.js';

const [database = '', location = '', shard = '', rounds, dieAt] = process.argv.slice(2);
const options = { command: 'test', now: () => new Date(), maxWaitMs: 30_000 };
const warehouse = await openWarehouse(database, options);

let touched = 0;
const { chmod, link, mkdir, open, readFile, rename, rm, writeFile } = fs;
for (const [name, real] of Object.entries({ chmod, link, mkdir, open, readFile, rename, rm, writeFile }))
  Object.assign(fs, {
    [name]: (...values: unknown[]): unknown => {
      if (++touched === Number(dieAt)) process.kill(process.pid, 'SIGKILL');
      return Reflect.apply(real, fs, values);
    },
  });
syncBuiltinESMExports();

const { publishLake } = await import('../../src/warehouse/lake/lake.js');
for (let round = 0; round < Number(rounds); round++) {
  await warehouse.exclusive((connection) =>
    connection.run(
      "UPDATE page_views SET human = human + 1, total = total + 1 WHERE day = '2026-11-01'; UPDATE day_loads SET human = human + 40, total = total + 40, loaded_at = now()::TIMESTAMP WHERE day = '2026-11-01'",
    ),
  );
  await publishLake(warehouse, {
    place: {
      ...{ location, keepReplacedMs: 86_400_000, region: undefined },
      ...{ endpoint: process.env['LAKE_ENDPOINT'], credentials: process.env },
    },
    ...{ shard: parseShard(shard), source: 'https://platform.example.com', now: new Date() },
    signal: new AbortController().signal,
    isRebuild: process.env['LAKE_REBUILD'] !== undefined,
  });
}
await warehouse.close();
