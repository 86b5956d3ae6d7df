import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { QueryProcesses } from '../../src/sql/query-processes.js';
import { tempDir } from '../temp-dir.js';

it('a query that is cancelled while its process is prepared does not run', async () => {
  const cwd = await tempDir();
  const ran = join(cwd, 'ran');
  const hook = join(cwd, 'hook.cjs');
  await writeFile(hook, `require('fs').writeFileSync(${JSON.stringify(ran)}, '')`);
  const queries = new QueryProcesses({
    options: ['--sandbox'],
    cwd,
    environment: { ...process.env, NODE_OPTIONS: `--require ${hook}` },
    timeoutMs: 60_000,
    dataDir: cwd,
  });
  const ask = (signal: AbortSignal) => queries.ask('SELECT 1', { maxRows: 1, maxCharacters: 1_000 }, signal);
  const cancelled = new AbortController();
  const answer = ask(cancelled.signal);
  // Until its temporary directory is being made.
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  cancelled.abort();
  await expect(answer).rejects.toThrow(/abort/i);
  expect(existsSync(ran)).toBe(false);
  // The next one does.
  await expect(ask(new AbortController().signal)).rejects.toThrow('There is no history yet');
  expect(existsSync(ran)).toBe(true);
  await queries.close();
});
