import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { expectLocks } from '../../src/state/lock.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { tempDir } from '../temp-dir.js';
import { newState, newWorker } from './new-state.js';
import { otherProcess } from './other-process.js';

describe('where locks do not work', () => {
  let library: string;
  beforeAll(async () => {
    library = join(await tempDir(), 'no-locks.so');
    const shim = fileURLToPath(new URL('no-locks.c', import.meta.url));
    await promisify(execFile)('cc', ['-shared', '-fPIC', '-o', library, shim, '-ldl']);
  });
  const refused = {
    error: 'StorageError',
    message: expect.stringMatching(
      /Locks do not work in .* Set dataDir to a directory on a local disk/,
    ) as string,
  };

  it('because they do nothing, it is found out with a second process', async () => {
    const { dataDir, state } = await newState();
    const other = await otherProcess(dataDir, { env: { LD_PRELOAD: library, LOCK_ERRNO: '0' } });
    await other.does('acquire', 0);
    expect(await other.told('expectLocks')).toMatchObject(refused);
    expect(readWorkspaceRow(state).locks_work_on).toBeNull();
  });

  it.each([
    ['ENOLCK', 37],
    ['EOPNOTSUPP', 95],
    ['EINVAL', 22],
  ])(
    'because they fail with %s, no state is created or opened, and no other process is blamed',
    async (_, errno) => {
      const env = { LD_PRELOAD: library, LOCK_ERRNO: String(errno) };
      const creating = await otherProcess(join(await tempDir(), 'data'), { env });
      expect(await creating.told('create')).toMatchObject(refused);
      const { dataDir } = await newState();
      const opening = await otherProcess(dataDir, { env });
      expect(await opening.told('attempts')).toMatchObject(refused);
    },
  );

  it('is found out once for each device', async () => {
    const { dataDir, state } = await newState();
    const worker = await newWorker(dataDir, state);
    await expectLocks(dataDir, state);
    const { locks_work_on: device } = readWorkspaceRow(state);
    expect(device).toMatch(/^\d+$/);
    // Without a lock, a second process would find that they do not work.
    await worker.release();
    await expectLocks(dataDir, state);
  });
});
