/**
 * Loaded before a measured program: writes its memory to the file BENCH_USAGE names, and counts calls of DuckDB where
 * BENCH_CALLS is set.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';

let calls = 0;
if (process.env.BENCH_CALLS) {
  const require = createRequire(import.meta.url);
  const path = require.resolve('@duckdb/node-bindings');
  const duckdb = require(path);
  const counted = (name) => ({
    value: (...values) => {
      calls++;
      return duckdb[name](...values);
    },
  });
  const names = ['query', 'execute_prepared', 'execute_prepared_streaming'];
  const properties = Object.fromEntries(names.map((name) => [name, counted(name)]));
  require.cache[path].exports = Object.create(duckdb, properties);
}
process.on('exit', () => {
  const usage = { peakMb: process.resourceUsage().maxRSS / 1024, calls };
  writeFileSync(process.env.BENCH_USAGE, JSON.stringify(usage));
});
