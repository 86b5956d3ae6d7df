/**
 * Loaded before a measured program: writes what it used to the file BENCH_USAGE names, and counts calls of DuckDB where
 * BENCH_CALLS is set.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';

let calls = 0;
if (process.env.BENCH_CALLS) {
  const duckdb = createRequire(import.meta.url)('@duckdb/node-bindings');
  for (const name of ['query', 'execute_prepared', 'execute_prepared_streaming', 'start_prepared']) {
    const call = duckdb[name];
    if (call)
      duckdb[name] = (...values) => {
        calls++;
        return call(...values);
      };
  }
}
process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage = { processorS: (userCPUTime + systemCPUTime) / 1e6, peakMb: maxRSS / 1024, calls };
  writeFileSync(process.env.BENCH_USAGE, JSON.stringify(usage));
});
