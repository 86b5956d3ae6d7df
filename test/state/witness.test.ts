import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { adopt, readWitness, witnessOf, writeWitness } from '../../src/state/witness.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { afterTest } from '../cleanup.js';
import { smallDisk } from '../small-disk.js';
import { tempDir } from '../temp-dir.js';
import { addJob, change, newSender, newState, placeIn, valueOf } from './new-state.js';
import { otherProcess } from './other-process.js';

describe('the witness', () => {
  it('lies beside the configuration', () => {
    expect(witnessOf(join('a', 'readership.yaml'))).toBe(join('a', '.readership.yaml.sent'));
  });

  it('is written before anything is sent, for its owner only, with a line that says what it is for', async () => {
    const { witness, begin, id } = await newSender();
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
    const { witness, begin, id, state } = await newSender();
    await change(state, 'UPDATE workspace SET attempt = 41');
    if (text !== undefined) await writeFile(witness, text);
    expect(await begin()).toBe(42);
    expect(readWitness(witness)).toEqual({ workspace: id, attempt: 42 });
  });

  it('that is behind, as after a death before it was written, is no problem', async () => {
    const { witness, begin, id, state } = await newSender();
    writeWitness(witness, { workspace: id, attempt: 3 });
    await change(state, 'UPDATE workspace SET attempt = 4');
    expect(await begin()).toBe(5);
  });

  it('of a longer text leaves nothing of it', async () => {
    const { witness, id } = await newSender();
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
    const { witness, begin, id, state, sender } = await newSender();
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
    const { witness, begin, state } = await newSender();
    await mkdir(witness);
    await expect(begin()).rejects.toThrow(/Cannot read .*EISDIR/);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
  });

  it('is in a directory that does not exist: the row is as before, and the number is used up', async () => {
    const { state, begin } = await newSender({ witness: join(await tempDir(), 'missing', '.sent') });
    await expect(begin()).rejects.toThrow(/Cannot write .* Nothing was sent/);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
    expect(readWorkspaceRow(state).attempt).toBe(1);
  });

  it('does not fit on the disk; it is sent when there is space', async (context) => {
    const small = await tempDir();
    const disk = await smallDisk(context, small);
    await writeFile(join(small, 'other'), 'x');
    const { state, witness, begin } = await newSender({ witness: join(small, '.readership.yaml.sent') });
    await disk.leaveRoom(0);
    const full = /Nothing was sent\. The disk is full: free some space/;
    for (let time = 0; time < 2; time++) await expect(begin()).rejects.toThrow(full);
    expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
    await disk.makeRoom();
    expect(await begin()).toBe(3);
    // Once it is there, a full disk does not matter.
    await disk.leaveRoom(0);
    expect(await begin()).toBe(4);
    expect(readWitness(witness)?.attempt).toBe(4);
  });

  it('is on a disk that has become read-only since', async (context) => {
    const small = await tempDir();
    const disk = await smallDisk(context, small);
    const { begin } = await newSender({ witness: join(small, '.readership.yaml.sent') });
    expect(await begin()).toBe(1);
    await disk.setReadOnly(true);
    await expect(begin()).rejects.toThrow(/Cannot write .*EROFS/);
  });
});

it('without a witness, things are sent where its directory is on a read-only disk, as in containers', async (context) => {
  const small = await tempDir();
  const disk = await smallDisk(context, small);
  const { witness, begin } = await newSender({ witness: join(small, '.readership.yaml.sent') });
  await disk.setReadOnly(true);
  expect(await begin()).toBe(1);
  expect(writeWitness(witness, { workspace: 'w', attempt: 1 })).toBe(false);
});

describe.skipIf(process.getuid?.() !== 0)(
  'for a user who may not create files beside the configuration',
  () => {
    const user = 65_534;
    const ofOther = async () => {
      const { dataDir, state } = await newState();
      await addJob(state);
      for (const directory of [join(dataDir, '..'), dataDir]) await chmod(directory, 0o755);
      await promisify(execFile)('chown', ['-R', `${user}`, dataDir]);
      const witness = join(dataDir, '..', '.readership.yaml.sent');
      return { state, witness, open: () => otherProcess(dataDir, { witness, user }) };
    };

    it('things are sent without a witness', async () => {
      const { witness, open } = await ofOther();
      expect(await (await open()).does('begin')).toBe(1);
      expect(readWitness(witness)).toBeUndefined();
    });

    it('nothing is sent where it is there, but may not be written', async () => {
      const { state, witness, open } = await ofOther();
      for (const mode of [0o444, 0o000]) {
        writeWitness(witness, { workspace: readWorkspaceRow(state).id, attempt: 0 });
        await chmod(witness, mode);
        const other = await open();
        expect(await other.told('begin'), mode.toString(8)).toMatchObject({
          error: 'StorageError',
          message: expect.stringMatching(/Cannot (write|read) .* Nothing was sent/) as string,
        });
        await other.kill();
      }
    });
  },
);

it('may be a single file that is mounted, which cannot be replaced', async (context) => {
  const { witness, begin } = await newSender();
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

it('where the witness is ahead, `adopt` names the attempts between, and the workspace sends again', async () => {
  const { dataDir, state, worker, witness, begin, id: workspace } = await newSender();
  writeWitness(witness, { workspace, attempt: 3 });
  await expect(begin()).rejects.toThrow(/knows 0 attempts.+readership adopt/);
  expect(await adopt({ state, worker, witness }, placeIn(dataDir))).toEqual({ first: 1, last: 3 });
  expect(readWitness(witness)).toEqual({ workspace, attempt: 3 });
  expect(await begin()).toBe(4);
  // The witness of another workspace is not taken over.
  await writeFile(witness, '{"workspace":"other","attempt":9}\n');
  await expect(adopt({ state, worker, witness }, placeIn(dataDir))).rejects.toThrow(/another workspace/);
});
