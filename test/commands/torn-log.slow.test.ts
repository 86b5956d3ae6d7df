import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { expectWhole, storedDays } from '../export/stored-days.js';
import { inHistory } from '../open-history.js';
import { startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { Choice } from '../torture/choice.js';
import { openSite } from './site.js';
import { daysAgo, historyFile } from './workspace.js';

const DAYS = 120;
const SEED = 20261118;

describe('the write-ahead log of a killed export', () => {
  const choice = new Choice(SEED);
  let killed: string;
  let log: Buffer;
  /** Newest first. */
  let committed: readonly string[];

  /** The days in a copy of the database with this log, or the error if it is refused. */
  async function daysWith(bytes: Uint8Array): Promise<readonly string[] | string> {
    const path = join(await tempDir(), 'history.duckdb');
    await copyFile(killed, path);
    await writeFile(`${path}.wal`, bytes);
    try {
      return await inHistory(path, async (history) => {
        await expectWhole(history);
        return (await storedDays(history)).map(({ day }) => day).reverse();
      });
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      expect((await readFile(`${path}.wal`)).equals(bytes), 'the log is still there').toBe(true);
      return error.message;
    }
  }

  beforeAll(async () => {
    const { sandbox, cwd, env } = await openSite(
      { firstDay: daysAgo(DAYS), pages: 300 },
      `history: { start: ${daysAgo(DAYS)} }\n`,
    );
    sandbox.setFaults([{ on: 'views', kind: 'timeout', after: 100 }]);
    const { child, result } = startCli(['export'], { cwd, env });
    const isHeld = () => sandbox.inspect().requests.recent.length > 100;
    await vi.waitUntil(isHeld, { interval: 5, timeout: 60_000 });
    child.kill('SIGKILL');
    await result;
    killed = join(await tempDir(), 'killed.duckdb');
    await copyFile(historyFile(cwd), killed);
    log = await readFile(`${historyFile(cwd)}.wal`);
    const days = await daysWith(log);
    if (typeof days === 'string') throw new Error(days);
    committed = days;
    expect(committed.length).toBeGreaterThan(10);
  });

  it('cut off anywhere, still has every day before the cut, complete', async () => {
    const drawn = Array.from({ length: 14 }, () => choice.whole(0, log.length));
    const cuts = [...new Set([0, 1, 100, log.length - 1, ...drawn])].sort((one, other) => one - other);
    let before: readonly string[] = [];
    for (const cut of cuts) {
      const days = await daysWith(log.subarray(0, cut));
      expect(days, `cut at ${cut}`).toEqual(expect.arrayContaining([...before]));
      before = typeof days === 'string' ? expect.fail(days) : days;
      expect(committed, `cut at ${cut}`).toEqual(expect.arrayContaining([...before]));
    }
    // Without its last byte, the log lacks the last commit: as many days as were read during the one before.
    expect(before.length).toBeLessThan(committed.length);
    expect(before.length).toBeGreaterThan(0);
  });

  it('with one changed byte is refused with advice, or has complete days up to that byte', async () => {
    let refused = 0;
    for (let count = 0; count < 16; count++) {
      const at = choice.whole(0, log.length - 1);
      const flipped = Buffer.from(log);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << choice.whole(0, 7));
      const days = await daysWith(flipped);
      if (typeof days === 'string') {
        expect(days).toContain('It is damaged. Nothing was changed.');
        refused += 1;
      } else expect(committed, `changed at ${at}`).toEqual(expect.arrayContaining([...days]));
    }
    expect(refused).toBeGreaterThan(12);
  });

  it.each([
    ['zeros, as after a power failure', () => 0],
    ['noise', () => choice.whole(0, 255)],
  ])('that continues with %s is refused with what to do', async (_, byte) => {
    const middle = Math.floor(log.length / 2);
    const spoilt = log.map((sound, at) => (at < middle ? sound : byte()));
    expect(await daysWith(spoilt)).toContain('It is damaged. Nothing was changed.');
  });
});
