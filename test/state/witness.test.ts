import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { readWitness, witnessOf, writeWitness } from '../../src/state/witness.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { afterTest } from '../cleanup.js';
import { smallDisk } from '../small-disk.js';
import { tempDir } from '../temp-dir.js';
import { addJob, change, newState, newWorker, NOW, senderOf, valueOf } from './new-state.js';
import { otherProcess } from './other-process.js';

/** A workspace with one planned job, and what tries to send it. */
async function ready(directory?: string) {
  const root = directory ?? (await tempDir());
  const { dataDir, state } = await newState(join(root, 'data'));
  await addJob(state);
  const worker = await newWorker(dataDir, state);
  const witness = witnessOf(join(root, 'readership.yaml'));
  const sender = senderOf(dataDir, state, worker, witness);
  const begin = async () =>
    (
      await sender.begin(
        NOW,
        (attempt) => state.run(`UPDATE jobs SET state = 'sending', attempt = $attempt`, { attempt }) === 1,
        () => state.run(`UPDATE jobs SET state = 'planned', attempt = NULL`),
      )
    )?.number;
  const { id } = readWorkspaceRow(state);
  return { root, dataDir, state, witness, sender, begin, id };
}

describe('the witness', () => {
  it('lies beside the configuration', () => {
    expect(witnessOf(join('a', 'readership.yaml'))).toBe(join('a', '.readership.yaml.sent'));
  });

  it('is written before anything is sent, for its owner only, with a line that says what it is for', async () => {
    const { witness, begin, id } = await ready();
    expect(await begin()).toBe(1);
    expect(readWitness(witness)).toEqual({ workspace: id, attempt: 1 });
    expect((await stat(witness)).mode & 0o777).toBe(0o600);
    expect(await readFile(witness, 'utf8')).toMatch(/\n.*Delete it only to start over\.\n$/s);
    expect(await begin()).toBe(2);
    expect(readWitness(witness)).toEqual({ workspace: id, attempt: 2 });
  });

  it.each([
    ['missing', undefined],
    ['empty, as after a power failure', ''],
  ])('that is %s is written again', async (_, text) => {
    const { witness, begin, id, state } = await ready();
    await change(state, 'UPDATE workspace SET attempt = 41');
    if (text !== undefined) await writeFile(witness, text);
    expect(await begin()).toBe(42);
    expect(readWitness(witness)).toEqual({ workspace: id, attempt: 42 });
  });

  it('that is behind, as after a death before it was written, is no problem', async () => {
    const { witness, begin, id, state } = await ready();
    writeWitness(witness, { workspace: id, attempt: 3 });
    await change(state, 'UPDATE workspace SET attempt = 4');
    expect(await begin()).toBe(5);
  });

  it('of a longer text leaves nothing of it', async () => {
    const { witness, id } = await ready();
    writeWitness(witness, { workspace: id.repeat(50), attempt: 1 });
    writeWitness(witness, { workspace: id, attempt: 2 });
    expect(await readFile(witness, 'utf8')).not.toContain(`${id}${id}`);
  });
});

describe('nothing is sent, and nothing changes, if the witness', () => {
  it.each([
    ['is of another workspace', () => ({ workspace: 'other', attempt: 0 }), /belongs to another workspace/],
    [
      'is ahead by one',
      (id: string) => ({ workspace: id, attempt: 1 }),
      /is older than .* 0 attempts .* 1\. .*readership adopt/,
    ],
    ['has no number', (id: string) => ({ workspace: id }), /Cannot read .*delete it/s],
    ['has half a number', (id: string) => ({ workspace: id, attempt: 1.5 }), /Cannot read .*delete it/s],
    ['is garbage', () => 'garbage', /Cannot read .*delete it/s],
    ['is cut off', (id: string) => `{"workspace":"${id}","att`, /Cannot read .*delete it/s],
    ['is zeros', () => '\0'.repeat(300), /Cannot read .*delete it/s],
  ])('%s', async (_, contents, words) => {
    const { witness, begin, id, state, sender } = await ready();
    const found = contents(id);
    const text = typeof found === 'string' ? found : `${JSON.stringify(found)}\n`;
    await writeFile(witness, text);
    expect(await sender.refusal()).toMatchObject({ message: expect.stringMatching(words) as string });
    await expect(begin()).rejects.toThrow(words);
    await expect(begin()).rejects.toThrow(StorageError);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
    expect(readWorkspaceRow(state).attempt).toBe(0);
    expect(await readFile(witness, 'utf8')).toBe(text);
  });

  it('is a directory', async () => {
    const { witness, begin, state } = await ready();
    await mkdir(witness);
    await expect(begin()).rejects.toThrow(/Cannot read .*EISDIR/);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
  });

  it('is in a directory that does not exist: the row is as before, and the number is used up', async () => {
    const { dataDir, state } = await newState();
    await addJob(state);
    const worker = await newWorker(dataDir, state);
    const sender = senderOf(dataDir, state, worker, join(dataDir, 'missing', '.readership.yaml.sent'));
    const mark = (attempt: number) =>
      state.run(`UPDATE jobs SET state = 'sending', attempt = $attempt`, { attempt }) === 1;
    const unmark = () => state.run(`UPDATE jobs SET state = 'planned', attempt = NULL`);
    await expect(sender.begin(NOW, mark, unmark)).rejects.toThrow(/Cannot write .* Nothing was sent/);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
    expect(readWorkspaceRow(state).attempt).toBe(1);
  });

  it('does not fit on the disk; it is sent when there is space', async (context) => {
    const small = await tempDir();
    const disk = await smallDisk(context, small);
    await writeFile(join(small, 'other'), 'x');
    const { dataDir, state } = await newState();
    await addJob(state);
    const worker = await newWorker(dataDir, state);
    const witness = join(small, '.readership.yaml.sent');
    const sender = senderOf(dataDir, state, worker, witness);
    const begin = () =>
      sender.begin(
        NOW,
        (attempt) => state.run(`UPDATE jobs SET state = 'sending', attempt = $attempt`, { attempt }) === 1,
        () => state.run(`UPDATE jobs SET state = 'planned', attempt = NULL`),
      );
    await disk.leaveRoom(0);
    const full = /Nothing was sent\. The disk is full: free some space/;
    await expect(begin()).rejects.toThrow(full);
    await expect(begin()).rejects.toThrow(full);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
    await disk.makeRoom();
    expect((await begin())?.number).toBe(3);
    expect(readWitness(witness)?.attempt).toBe(3);
    // Once it is there, a full disk does not matter.
    await disk.leaveRoom(0);
    expect((await begin())?.number).toBe(4);
    expect(readWitness(witness)?.attempt).toBe(4);
  });

  it('is on a disk that has become read-only since', async (context) => {
    const small = await tempDir();
    const disk = await smallDisk(context, small);
    const { dataDir, state } = await newState();
    const worker = await newWorker(dataDir, state);
    const witness = join(small, '.readership.yaml.sent');
    const sender = senderOf(dataDir, state, worker, witness);
    const begin = () =>
      sender.begin(
        NOW,
        () => true,
        () => undefined,
      );
    expect((await begin())?.number).toBe(1);
    await disk.setReadOnly(true);
    await expect(begin()).rejects.toThrow(/Cannot write .*EROFS/);
  });
});

describe('without a witness', () => {
  it('things are sent where its directory is on a read-only disk, as in containers', async (context) => {
    const small = await tempDir();
    const disk = await smallDisk(context, small);
    const { dataDir, state } = await newState();
    const worker = await newWorker(dataDir, state);
    await disk.setReadOnly(true);
    const witness = join(small, '.readership.yaml.sent');
    const sender = senderOf(dataDir, state, worker, witness);
    expect(
      (
        await sender.begin(
          NOW,
          () => true,
          () => undefined,
        )
      )?.number,
    ).toBe(1);
    expect(writeWitness(witness, { workspace: 'w', attempt: 1 })).toBe(false);
  });

  it.skipIf(process.getuid?.() !== 0)('things are sent where this user may not create files', async () => {
    const user = 65_534;
    const { dataDir, state } = await newState();
    await addJob(state);
    for (const directory of [join(dataDir, '..'), dataDir]) await chmod(directory, 0o755);
    await promisify(execFile)('chown', ['-R', `${user}`, dataDir]);
    const witness = join(dataDir, '..', '.readership.yaml.sent');
    const other = await otherProcess(dataDir, { witness, user });
    expect(await other.does('begin')).toBe(1);
    expect(readWitness(witness)).toBeUndefined();
  });

  it.skipIf(process.getuid?.() !== 0)(
    'nothing is sent where it is there, but may not be written',
    async () => {
      const user = 65_534;
      const { dataDir, state } = await newState();
      await addJob(state);
      for (const directory of [join(dataDir, '..'), dataDir]) await chmod(directory, 0o755);
      await promisify(execFile)('chown', ['-R', `${user}`, dataDir]);
      const witness = join(dataDir, '..', '.readership.yaml.sent');
      for (const mode of [0o444, 0o000]) {
        writeWitness(witness, { workspace: readWorkspaceRow(state).id, attempt: 0 });
        await chmod(witness, mode);
        const other = await otherProcess(dataDir, { witness, user });
        expect(await other.told('begin'), mode.toString(8)).toMatchObject({
          error: 'StorageError',
          message: expect.stringMatching(/Cannot (write|read) .* Nothing was sent/) as string,
        });
        await other.kill();
      }
    },
  );
});

it('may be a single file that is mounted, which cannot be replaced', async (context) => {
  const { witness, begin } = await ready();
  const outside = join(await tempDir(), 'witness');
  await writeFile(outside, '');
  await writeFile(witness, '');
  try {
    await promisify(execFile)('mount', ['--bind', outside, witness]);
  } catch {
    return context.skip('only root can mount a file, on Linux');
  }
  afterTest(() => promisify(execFile)('umount', ['--lazy', witness]));
  expect(await begin()).toBe(1);
  expect(readWitness(outside)?.attempt).toBe(1);
  expect(dirname(witness)).not.toBe(dirname(outside));
});
