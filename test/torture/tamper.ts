import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tampering } from './plan.js';
import type { World } from './world.js';

/**
 * Replaces the state by one that must not send. Returns what puts everything back; undefined if nothing shows yet that it is
 * wrong. No command may run.
 */
export async function tamper(world: World, by: Tampering): Promise<(() => Promise<void>) | undefined> {
  const { live, dataDir, stateFile, historyFile } = world;
  const witness = await world.readWitness();
  if (live === undefined) return undefined;
  // Of a state that has never sent or loaded anything, nobody knows that it was there.
  if (witness === undefined && !existsSync(historyFile)) return undefined;
  const [{ attempt } = { attempt: 0 }] = live.workspace;
  if (by === 'an older state' && (attempt === 0 || witness?.attempt !== attempt)) return undefined;
  const files = [stateFile, `${stateFile}-journal`];
  const kept = await mkdtemp(join(tmpdir(), 'readership-torture-kept-'));
  await cp(dataDir, kept, { recursive: true });
  switch (by) {
    case 'no state':
      for (const file of files) await rm(file, { force: true });
      break;
    case 'a damaged state':
      await writeFile(stateFile, 'no header, no magic bytes', { flag: 'r+' });
      // It would repair it.
      await rm(`${stateFile}-journal`, { force: true });
      break;
    case 'an older state':
      change(stateFile, 'UPDATE workspace SET attempt = attempt - 1');
      break;
    case 'the state of another workspace':
      change(stateFile, `UPDATE workspace SET id = '${randomUUID()}'`);
  }
  return async () => {
    for (const name of await readdir(dataDir)) await rm(join(dataDir, name), { recursive: true });
    await cp(kept, dataDir, { recursive: true });
    await rm(kept, { recursive: true });
  };
}

/** Whether a command that has nothing to send notices as well. */
export const isRefusedAtOnce = (by: Tampering): boolean => by === 'no state' || by === 'a damaged state';

function change(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}
