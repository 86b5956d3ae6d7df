import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { buildShim, failedAt } from '../torture/shim.js';
import { expectWhole, storedDays } from '../export/stored-days.js';
import { inHistory } from '../open-history.js';
import {
  daysAgo,
  endedWith,
  env,
  historyFile,
  keep,
  putBack,
  serveSandbox,
  workspaceOf,
} from './workspace.js';

const EXPORT = ['export'];
const DAYS = 12;
/** Of the changes of a file, CI tries the first, the last, and every sixth. */
const EVERY = process.env['CI'] === undefined ? 1 : 6;

let shim: string | undefined;
let cwd: string;
let data: string;
/** The workspace before the last days are loaded. */
let saved: string;
beforeAll(async () => {
  shim = await buildShim();
  cwd = await workspaceOf(await serveSandbox({ firstDay: daysAgo(DAYS) }));
  data = join(cwd, 'data');
  endedWith(0, await runCli([...EXPORT, '--to', daysAgo(4)], { cwd, env }));
  saved = await keep(cwd);
});

it.each([
  ['writing the next version or its checkpoint', 'pwrite'],
  ['syncing the next version', 'fsync'],
  ['renaming it', 'rename'],
])(
  'the last version of the history stays whole if the disk fails while %s (skipped without a C compiler)',
  async (_, call) => {
    if (shim === undefined) return;
    const library = shim;
    const before = await readFile(historyFile(saved));
    const count = join(await tempDir(), 'count');
    const exportAgain = async (change?: number) => {
      await putBack(cwd, saved);
      const failing = failedAt(library, call, change, data, 'history.duckdb.next-');
      return runCli(EXPORT, { cwd, env: { ...env, ...failing, TEAR_COUNT: count } });
    };
    endedWith(0, await exportAgain());
    const changes = Number(await readFile(count, 'utf8'));
    expect(changes).toBeGreaterThan(0);
    for (let change = 1; change <= changes; change++) {
      if (change % EVERY !== 1 % EVERY && change !== changes) continue;
      const { stderr } = endedWith(1, await exportAgain(change));
      expect(stderr, `${call} ${change} of ${changes}`).toMatch(
        /^export failed: Cannot (?:write the next version of .+ \(the last one was kept\)|use .+state\.db): .+\nThe disk reports errors: check it .+, then run the command again\.\n$/m,
      );
      expect((await readFile(historyFile(cwd))).equals(before)).toBe(true);
      expect((await readdir(data)).filter((name) => /next-|wal$/.test(name))).toEqual([]);
    }
    endedWith(0, await runCli(EXPORT, { cwd, env }));
    await inHistory(historyFile(cwd), async (history) => {
      await expectWhole(history);
      expect(await storedDays(history)).toHaveLength(DAYS);
    });
  },
);
