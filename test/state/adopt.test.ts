import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { adopt, readWitness, writeWitness } from '../../src/state/witness.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { newState, newWorker, NOW, placeIn, senderOf } from './new-state.js';

it('where the witness is ahead, `adopt` names the attempts between, and the workspace sends again', async () => {
  const { dataDir, state } = await newState();
  const worker = await newWorker(dataDir, state);
  const witness = join(dataDir, '..', '.readership.yaml.sent');
  const { id: workspace } = readWorkspaceRow(state);
  writeWitness(witness, { workspace, attempt: 3 });
  const begin = () =>
    senderOf(dataDir, state, worker, witness).begin(
      NOW,
      () => true,
      () => undefined,
    );
  await expect(begin()).rejects.toThrow(/knows 0 attempts.+readership adopt/);
  expect(await adopt({ state, worker, witness }, placeIn(dataDir))).toEqual({ first: 1, last: 3 });
  expect(readWitness(witness)).toEqual({ workspace, attempt: 3 });
  expect((await begin())?.number).toBe(4);
  // The witness of another workspace is not taken over.
  await writeFile(witness, '{"workspace":"other","attempt":9}\n');
  await expect(adopt({ state, worker, witness }, placeIn(dataDir))).rejects.toThrow(/another workspace/);
});
