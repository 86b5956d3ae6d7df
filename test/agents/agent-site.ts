import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays, dayOf } from '../../src/day.js';
import type { Sandbox } from '../sandbox/faulty-sandbox.js';
import { createState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { closeNow, newStore } from '../open-history.js';
import { tempDir } from '../temp-dir.js';
import { type DailyReading, storeReading } from './reading.js';

/**
 * A workspace directory of the command line, with ten weeks of history up to yesterday, and its state.
 * `improve` is the section of that name, as YAML in braces.
 */
export async function agentSite(
  sandbox: Pick<Sandbox, 'baseUrl' | 'projectId' | 'apiKey'>,
  pages: readonly DailyReading[],
  improve: string,
) {
  const cwd = await tempDir();
  const historyFile = join(cwd, 'data', 'history.duckdb');
  await mkdir(join(cwd, 'data'));
  const config = `baseUrl: ${sandbox.baseUrl}
projects: [{ id: ${sandbox.projectId}, name: Acme Docs }]
improve: ${improve}
`;
  await writeFile(join(cwd, 'readership.yaml'), config);
  const dataDir = join(cwd, 'data');
  (await createState(dataDir, await placeOf(dataDir))).close();
  const history = await newStore(historyFile);
  const yesterday = addDays(dayOf(new Date()), -1);
  await storeReading(history, pages, {
    ...{ project: sandbox.projectId, first: addDays(yesterday, -70), last: yesterday },
  });
  await closeNow(history);
  return { cwd, historyFile, env: { READERSHIP_API_KEY: sandbox.apiKey } };
}
