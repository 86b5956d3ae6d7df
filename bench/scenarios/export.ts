import { Client } from '../../src/api/client.js';
import type { Day } from '../../src/day.js';
import { exportHistory } from '../../test/export/export-history.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';

const now = () => new Date();

/** The real export: walk, check, store and checkpoint. Returns the number of rows stored. */
export async function exportAll(
  baseUrl: string,
  warehouse: Warehouse,
  first: Day,
  last: Day,
  concurrency: number,
): Promise<number> {
  const client = new Client({ baseUrl, projectId: 'prj_bench', apiKey: 'bench', keyName: 'BENCH', now });
  const common = { warehouse, client, project: 'prj_bench', now };
  const { results, stopped } = await exportHistory({
    ...common,
    range: { first, last },
    settleDays: 3,
    concurrency,
  });
  await client.close();
  await warehouse.close();
  if (stopped !== undefined) throw new Error('the export stopped', { cause: stopped });
  return results.reduce((sum, result) => sum + (result.outcome === 'failed' ? 0 : result.rows), 0);
}
