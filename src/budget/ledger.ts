import { subHours } from 'date-fns';
import { randomUUID } from 'node:crypto';
import { recordedUse, RollingHour } from '../api/hour.js';
import type { RequestCounts } from '../api/pace.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';

const RECENT_USES = readSql(import.meta.url, 'statements/recent-uses.sql');
const COUNT_FROM_NOW = readSql(import.meta.url, 'statements/count-from-now.sql');
const FORGET_PAUSES = 'DELETE FROM request_uses WHERE bucket = $bucket AND paused_until IS NOT NULL';
const FORGET_OLD = 'DELETE FROM request_uses WHERE used_at < $now::TIMESTAMP - INTERVAL 2 DAY';

/** The last hour of a bucket as of `now`. */
export async function readHour(reader: Reader, bucket: string, now: Date): Promise<RollingHour> {
  const parameters = { bucket, now, since: subHours(now, 2) };
  return new RollingHour(await reader.query(RECENT_USES, recordedUse, parameters), now);
}

/** Counts the requests of a bucket in the database. */
export const countsIn = (warehouse: Warehouse, bucket: string): RequestCounts => {
  const record = (at: Date, requests: number, pausedUntil: Date | null) =>
    warehouse.groupCommit((transaction) => {
      const cause = pausedUntil === null ? 'reserved' : 'refused';
      return transaction.appendRow('request_uses', [randomUUID(), bucket, at, requests, cause, pausedUntil]);
    });
  return {
    // Removes old rows, and corrects rows dated by a wrong clock.
    read: async (now) => {
      await warehouse.transaction(async (transaction) => {
        await transaction.execute(FORGET_OLD, { now });
        await transaction.execute(COUNT_FROM_NOW, { now });
      });
      return readHour(warehouse, bucket, now);
    },
    recordSent: (requests, at) => record(at, requests, null),
    recordPause: (at, until) => record(at, 0, until),
    forgetPauses: () =>
      warehouse.groupCommit((transaction) => transaction.execute(FORGET_PAUSES, { bucket })),
  };
};
