import { subHours } from 'date-fns';
import { recordedUse, RollingHour } from '../api/hour.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';

const RECENT_USES = readSql(import.meta.url, 'statements/recent-uses.sql');
const COUNT_FROM_NOW = readSql(import.meta.url, 'statements/count-from-now.sql');
const FORGET_REFUSALS = readSql(import.meta.url, 'statements/forget-refusals.sql');
const RETURN_UNUSED = readSql(import.meta.url, 'statements/return-unused.sql');
const FORGET_OLD = 'DELETE FROM request_uses WHERE used_at < $now::TIMESTAMP - INTERVAL 2 DAY';

/** Projects that share an hourly limit, and the name under which their requests are counted. */
export interface SharedLimit {
  readonly bucket: string;
  readonly projects: readonly ProjectSettings[];
}

/** Requests recorded with one row, and how many of them were not sent yet. */
export interface RequestUse {
  readonly id: string;
  readonly at: Date;
  left: number;
  /** The end of the pause that the server requested, if it refused a request. */
  readonly pausedUntil?: Date;
}

/** A bucket's hour in the ledger as of `now`; if `own`, without what the platform's refusals said about it. */
export async function readHour(
  reader: Reader,
  bucket: string,
  now: Date,
  { own = false } = {},
): Promise<RollingHour> {
  const parameters = { bucket, now, since: subHours(now, 2), own };
  return new RollingHour(await reader.query(RECENT_USES, recordedUse, parameters), now);
}

/** As `readHour`, before writing: removes old rows, and corrects rows dated by a wrong clock. */
export async function openHour(warehouse: Warehouse, bucket: string, now: Date): Promise<RollingHour> {
  await warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_OLD, { now });
    await transaction.execute(COUNT_FROM_NOW, { now });
  });
  return readHour(warehouse, bucket, now);
}

/** Writes the requests of a bucket to the ledger. */
export class RequestLedger {
  /** How many requests of an entry were not sent, by its id; the ledger counts them as used until the next commit. */
  #unused = new Map<string, number>();

  constructor(
    private readonly warehouse: Warehouse,
    private readonly bucket: string,
  ) {}

  /** Counts the requests of an entry as used, from before the first of them is sent, and takes back what others did not use. */
  async record(entry?: RequestUse): Promise<void> {
    const unused = [...this.#unused];
    this.#unused = new Map();
    if (entry === undefined && unused.length === 0) return;
    await this.warehouse.groupCommit(async (transaction) => {
      if (unused.length > 0) await transaction.execute(RETURN_UNUSED, { unused: JSON.stringify(unused) });
      if (entry === undefined) return;
      const { id, at, left, pausedUntil } = entry;
      const cause = pausedUntil === undefined ? 'reserved' : 'refused';
      await transaction.appendRow('request_uses', [id, this.bucket, at, left, cause, pausedUntil ?? null]);
    });
  }

  /** Takes back requests of an entry, with the next one that is recorded. */
  takeBack({ id }: RequestUse, unused: number): void {
    this.#unused.set(id, unused);
  }
}

/** The platform has answered in spite of its refusals. */
export const forgetRefusals = (warehouse: Warehouse, bucket: string): Promise<void> =>
  warehouse.groupCommit((transaction) => transaction.execute(FORGET_REFUSALS, { bucket }));
