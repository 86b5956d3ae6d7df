import type { Runtime, Workspace } from '../app/workspace.js';
import { readWorkspaceId } from '../effects/place.js';
import { examineDataset } from '../warehouse/dataset/dataset.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type CheckResult, found, pass } from './findings.js';

/** Whether the dataset, if there is one, can be read, and has no folder of another workspace. Writes nothing. */
export function tryDataset(
  { dataset: place, settings }: Workspace,
  warehouse: Warehouse,
  { signal }: Runtime,
): Promise<CheckResult>[] {
  if (place === undefined) return [];
  const examined = async () => {
    if ((await readWorkspaceId(warehouse)) === undefined) return pass('nothing was published yet');
    await examineDataset(warehouse, { place, projects: settings.projects, signal });
    return pass(`${place.location} can be read; nothing was written`);
  };
  return [found('dataset', examined)];
}
