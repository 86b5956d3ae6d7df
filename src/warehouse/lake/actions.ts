import { randomUUID } from 'node:crypto';
import { z } from 'zod';

/** The tables of a lake and their columns. `month` is in a file's path, not in the file. */
const COLUMNS = {
  views: { project: 'string', day: 'date', path: 'string', human: 'long', ai: 'long', total: 'long' },
  days: {
    ...{ project: 'string', day: 'date', state: 'string', loaded_at: 'timestamp' },
    ...{ human: 'long', ai: 'long', total: 'long', pages: 'long' },
  },
};
export const TABLES = ['views', 'days'] as const;
export type TableName = (typeof TABLES)[number];

export const fileSchema = z.looseObject({ path: z.string(), deletionTimestamp: z.int().nullish() });
export type LakeFile = z.infer<typeof fileSchema>;

const NEWER = 'the table needs a newer reader or writer';
/** A line of a log: the fields used here. All others are preserved. */
export const actionSchema = z.looseObject({
  add: fileSchema.nullish(),
  remove: fileSchema.nullish(),
  txn: z.looseObject({ appId: z.string(), version: z.int() }).nullish(),
  protocol: z
    .looseObject({ minReaderVersion: z.literal(1, NEWER), minWriterVersion: z.int().max(2, NEWER) })
    .nullish(),
  metaData: z.looseObject({ configuration: z.record(z.string(), z.string()) }).nullish(),
});
export type Action = z.infer<typeof actionSchema>;

/** The last action for each file and publisher, and those for the table: the contents of a checkpoint. */
export type TableState = ReadonlyMap<string, Action>;

/** The actions that create a table. Every engine supports reader version 1 and writer version 2. */
export function creation(table: TableName, configuration: Record<string, string>, now: Date): Action[] {
  const columns = Object.entries({ ...COLUMNS[table], month: 'string' });
  const fields = columns.map(([name, type]) => ({ name, type, nullable: true, metadata: {} }));
  const metaData = {
    ...{ id: randomUUID(), configuration, partitionColumns: ['month'], createdTime: now.getTime() },
    format: { provider: 'parquet', options: {} },
    schemaString: JSON.stringify({ type: 'struct', fields }),
  };
  return [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }];
}
