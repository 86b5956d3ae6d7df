import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { adopt, readWitness, writeWitness } from '../../src/state/witness.js';
import { newSender, placeIn } from './new-state.js';

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
