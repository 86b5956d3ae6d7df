import { z } from 'zod';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';

const FAULTS = readSql(import.meta.url, 'statements/faults.sql');

const faultRow = z.object({
  step: z.string(),
  words: z.string().nullable(),
  since: timestampColumn,
  over_at: timestampColumn.nullable(),
});
/** The latest fault of a step, which goes on until `over_at`, the start of the run that came to its end. */
export type Fault = z.infer<typeof faultRow>;

export const readFaults = (reader: Reader, now: Date): Promise<Fault[]> =>
  reader.query(FAULTS, faultRow, { now });

export const isGoingOn = ({ over_at: overAt }: Fault): boolean => overAt === null;
