/**
 * A night of a simulated workspace, which ends itself as if it was killed at a certain moment of its publication:
 * DIRECTORY WORKSPACE NIGHT PLACE MOMENT. The moments are before and after each file gets its name.
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const [directory = '', index, night, place = '', moment] = process.argv.slice(2);
let passed = 0;
function maybeDie(): void {
  if (++passed === Number(moment)) process.kill(process.pid, 'SIGKILL');
}

const { rename } = fs;
fs.rename = async (from, to) => {
  if (!String(to).startsWith(`${place}/`)) return rename(from, to);
  maybeDie();
  await rename(from, to);
  maybeDie();
};
syncBuiltinESMExports();

const { SimulatedWorkspace } = await import('./nights.js');
const workspace = await SimulatedWorkspace.open(directory, Number(index));
await workspace.load(Number(night));
await workspace.publish(place, {});
await workspace.close();
