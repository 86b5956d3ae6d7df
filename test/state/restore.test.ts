import { existsSync } from 'node:fs';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findState, isToReplace, writeState } from '../../src/state/restore.js';
import { saveState } from '../../src/state/copies.js';
import { addJob, change, newState, reopened, valueOf } from './new-state.js';

it.each(['missing', 'damaged'] as const)('a state that is %s is replaced by a saved one', async (loss) => {
  const { dataDir, state } = await newState();
  await addJob(state);
  const path = join(dataDir, 'state.db');
  const saved = saveState(state, join(dataDir, 'history.duckdb'));
  await rm(path);
  if (loss === 'damaged') await writeFile(path, 'x'.repeat(5_000));
  await writeFile(`${path}-journal`, 'of a killed process');
  const found = await findState(dataDir);
  expect(found.is).toBe(loss);
  expect(isToReplace(found, saved, { source: 'FILE', witness: undefined })).toBe(true);
  const { aside } = await writeState(dataDir, saved, 'FILE').putInPlace('TIME');
  expect(aside).toBe(loss === 'damaged' ? `${path}.replaced-TIME` : undefined);
  expect(valueOf(await reopened(dataDir), 'SELECT path FROM jobs')).toBe('/guide');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(existsSync(`${path}-journal`)).toBe(false);
  // One that knows as much is kept.
  expect(isToReplace(await findState(dataDir), saved, { source: 'FILE', witness: undefined })).toBe(false);
});

it.each([
  ['fewer', 1, true],
  ['as many', 2, false],
  ['more', 3, false],
])('a sound state that knows %s attempts than a saved one of two', async (_, attempts, isReplaced) => {
  const { dataDir, state } = await newState();
  await change(state, 'UPDATE workspace SET attempt = 2');
  const saved = saveState(state, join(dataDir, 'history.duckdb'));
  await change(state, 'UPDATE workspace SET attempt = $attempts', { attempts });
  const found = await findState(dataDir);
  expect(isToReplace(found, saved, { source: 'FILE', witness: undefined })).toBe(isReplaced);
});

it('the state of another workspace is refused', async () => {
  const [own, other] = [await newState(), await newState()];
  const saved = saveState(other.state, join(other.dataDir, 'history.duckdb'));
  const found = await findState(own.dataDir);
  expect(() => isToReplace(found, saved, { source: 'FILE', witness: undefined })).toThrow(
    /^FILE and the state here belong to different workspaces\. Nothing was changed\. .+ readership restore --from FILE$/,
  );
});
