import { addMilliseconds } from 'date-fns';
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { z } from 'zod';
import { PausedError } from '../api/errors.js';
import { type Pace, type Priority, SERVER_PAUSE } from '../api/retry.js';
import { type Sleep, sleepFor } from '../sleep.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { BLOCK_LIFE_MS, type HourState, hourState, nextFreeAt, usedRequests } from './hour.js';

const RECENT_USES = readSql(import.meta.url, 'statements/recent-uses.sql');
const RECORD_USE = readSql(import.meta.url, 'statements/record-use.sql');
const COUNT_FROM_NOW = readSql(import.meta.url, 'statements/count-from-now.sql');
const RETURN_UNUSED = readSql(import.meta.url, 'statements/return-unused.sql');

/** Requests reserved with one commit. A crash overcounts by less than this for each priority. */
const BLOCK_REQUESTS = 10;

/** A server that asks for a wait up to this limits bursts; a longer one means that the hour is used up. */
const BURST_WAIT_MS = 60_000;

/** The pause after a refusal that names no wait, where no hourly limit tells when the next request is free. */
const DEFAULT_PAUSE_MS = 60_000;

const useRow = z.object({
  used_at: timestampColumn,
  requests: z.int(),
  paused_until: timestampColumn.nullable(),
});

/** The ledger of a bucket as of `now`. */
export const readHour = async (reader: Reader, bucket: string, now: Date): Promise<HourState> =>
  hourState(
    await reader.query(RECENT_USES, useRow, { bucket, now, since: addMilliseconds(now, -7_200_000) }),
    now,
  );

export interface BudgetOptions {
  readonly warehouse: Warehouse;
  /** What shares the budget. */
  readonly bucket: string;
  /** Requests in any rolling hour. */
  readonly limit: number | 'unlimited';
  /** Of these, kept for urgent requests. */
  readonly reserve: number;
  /** How long a request may wait for its turn. */
  readonly maxWaitMs: number;
  readonly now: () => Date;
  readonly sleep?: Sleep;
  /** Called when requests wait: until when, and why. */
  readonly onWait?: (until: Date, why: string) => void;
}

interface LedgerEntry {
  readonly id: string;
  readonly now: Date;
  readonly requests: number;
  readonly cause: 'reserved' | 'refused';
  readonly paused_until: Date | null;
}

interface Refusal {
  readonly at: Date;
  /** What the server asked to wait, where it said so. */
  readonly retryAfterMs: number | undefined;
}

interface Block {
  readonly id: string;
  readonly reservedAt: Date;
  left: number;
}

/**
 * A budget of requests that survives restarts: reserved in the ledger, in blocks, before they are sent, so that a crash
 * can only overcount. Requests take turns here, so when one waits, all do.
 */
export class RequestBudget implements Pace {
  readonly #options: BudgetOptions;
  readonly #blocks = new Map<Priority, Block>();
  /** Refusals that are not in the ledger yet. */
  readonly #refusals: Refusal[] = [];
  #pausedUntil: Date | undefined;
  #isRead = false;
  readonly #inTurn = pLimit(1);

  constructor(options: BudgetOptions) {
    this.#options = options;
  }

  readonly before = (priority: Priority, signal?: AbortSignal): Promise<void> =>
    this.#inTurn(() => this.#wait(priority, (now) => this.#nextTurn(priority, now), signal));

  readonly hasRoom = (requests: number, priority: Priority): Promise<boolean> =>
    this.#inTurn(async () => (await this.#free(priority, this.#options.now())) >= requests);

  readonly room = (requests: number, priority: Priority, signal?: AbortSignal): Promise<void> =>
    this.#inTurn(() => this.#wait(priority, (now) => this.#roomAt(requests, priority, now), signal));

  /** The refusal is recorded before the next request takes its turn, however many wait. */
  readonly refused = (retryAfterMs: number | undefined): Promise<void> => {
    this.#refusals.push({ at: this.#options.now(), retryAfterMs });
    return this.#inTurn(() => this.#catchUp(this.#options.now()));
  };

  /** Returns what was reserved and not used. */
  close(): Promise<void> {
    return this.#inTurn(() => this.#returnAll());
  }

  /** Waits until `attempt` says that it is time, or throws when that is too far off. */
  async #wait(
    priority: Priority,
    attempt: (now: Date) => Promise<Date>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (;;) {
      signal?.throwIfAborted();
      const now = this.#options.now();
      const until = await attempt(now);
      if (until <= now) return;
      await this.#waitUntil(until, now, priority, signal);
    }
  }

  /** Takes a request and says `now`, or takes none and says when to try again. */
  async #nextTurn(priority: Priority, now: Date): Promise<Date> {
    const { limit } = this.#options;
    await this.#catchUp(now);
    if (this.#pausedUntil !== undefined && this.#pausedUntil > now) return this.#pausedUntil;
    if (limit === 'unlimited') return now;
    const block = this.#blocks.get(priority);
    if (block !== undefined && block.left > 0) {
      block.left--;
      return now;
    }
    return this.#reserve(priority, limit, now);
  }

  /** `now` when that many requests could be sent, or else when to look again. */
  async #roomAt(requests: number, priority: Priority, now: Date): Promise<Date> {
    const { limit } = this.#options;
    const wanted = limit === 'unlimited' ? requests : Math.min(requests, this.#allowed(priority, limit));
    if ((await this.#free(priority, now)) >= wanted) return now;
    if (limit === 'unlimited') return this.#pausedUntil ?? now;
    await this.#returnAll();
    return nextFreeAt(await this.#readHour(now), this.#allowed(priority, limit), wanted, now);
  }

  /** Requests that could be sent now. */
  async #free(priority: Priority, now: Date): Promise<number> {
    const { limit } = this.#options;
    await this.#catchUp(now);
    if (this.#pausedUntil !== undefined && this.#pausedUntil > now) return 0;
    if (limit === 'unlimited') return Infinity;
    const unspent = [...this.#blocks.values()].reduce((sum, { left }) => sum + left, 0);
    const spent = usedRequests(await this.#readHour(now)) - unspent;
    return Math.max(this.#blocks.get(priority)?.left ?? 0, this.#allowed(priority, limit) - spent);
  }

  #allowed(priority: Priority, limit: number): number {
    return priority === 'backfill' ? Math.max(1, limit - this.#options.reserve) : limit;
  }

  /** Reads an earlier pause, records refusals, and returns blocks that have expired. */
  async #catchUp(now: Date): Promise<void> {
    if (!this.#isRead) {
      await this.#countFromNow(now);
      this.#pausedUntil = (await this.#readHour(now)).pausedUntil;
      this.#isRead = true;
    }
    for (const [priority, block] of this.#blocks)
      if (!isAlive(block, now)) await this.#return(priority, block);
    for (const refusal of this.#refusals.splice(0)) await this.#recordRefusal(refusal);
  }

  /** Uses dated ahead of the clock count for the hour that begins now: too long at worst, and not forever. */
  async #countFromNow(now: Date): Promise<void> {
    const { warehouse, bucket } = this.#options;
    await warehouse.transaction((transaction) => transaction.execute(COUNT_FROM_NOW, { bucket, now }));
  }

  async #returnAll(): Promise<void> {
    for (const [priority, block] of this.#blocks) await this.#return(priority, block);
  }

  async #return(priority: Priority, { id, left }: Block): Promise<void> {
    this.#blocks.delete(priority);
    if (left === 0) return;
    await this.#options.warehouse.transaction((transaction) =>
      transaction.execute(RETURN_UNUSED, { id, unused: left }),
    );
  }

  /** Reserves a block and takes its first request, or says when a request will be free. */
  async #reserve(priority: Priority, limit: number, now: Date): Promise<Date> {
    const allowed = this.#allowed(priority, limit);
    // The last requests of the hour may lie in the other priority's block.
    if ((await this.#free(priority, now)) < BLOCK_REQUESTS) await this.#returnAll();
    const hour = await this.#readHour(now);
    const free = Math.min(BLOCK_REQUESTS, allowed - usedRequests(hour));
    if (free < 1) return nextFreeAt(hour, allowed, 1, now);
    const id = randomUUID();
    await this.#record({ id, now, requests: free, cause: 'reserved', paused_until: null });
    this.#blocks.set(priority, { id, reservedAt: now, left: free - 1 });
    return now;
  }

  /**
   * A refusal for the hour means that others have used what our count says is left, so the ledger counts it as used now
   * and no second refusal follows.
   */
  async #recordRefusal({ at: now, retryAfterMs }: Refusal): Promise<void> {
    const { limit } = this.#options;
    const isBurst = retryAfterMs !== undefined && retryAfterMs <= BURST_WAIT_MS;
    const unknownUses =
      limit === 'unlimited' || isBurst ? 0 : Math.max(0, limit - usedRequests(await this.#readHour(now)));
    const pauseMs = retryAfterMs ?? (limit === 'unlimited' ? DEFAULT_PAUSE_MS : 0);
    const pausedUntil = addMilliseconds(now, pauseMs);
    const id = randomUUID();
    await this.#record({ id, now, requests: unknownUses, cause: 'refused', paused_until: pausedUntil });
    if (this.#pausedUntil === undefined || this.#pausedUntil < pausedUntil) this.#pausedUntil = pausedUntil;
    if (!isBurst) this.#blocks.clear();
  }

  async #waitUntil(
    until: Date,
    now: Date,
    priority: Priority,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { maxWaitMs, onWait, sleep = sleepFor } = this.#options;
    const waitMs = until.getTime() - now.getTime();
    const isPaused = this.#pausedUntil !== undefined && this.#pausedUntil >= until;
    const why = isPaused ? SERVER_PAUSE : await this.#limitReached(now, priority);
    if (waitMs > maxWaitMs) throw new PausedError(why, until);
    onWait?.(until, why);
    await sleep(waitMs, signal);
  }

  async #limitReached(now: Date, priority: Priority): Promise<string> {
    const { limit, reserve } = this.#options;
    const used = usedRequests(await this.#readHour(now));
    const reserved = priority === 'backfill' && reserve > 0 ? `, ${reserve} reserved for recent days` : '';
    return `Hourly limit reached: ${used} of ${limit} used${reserved}.`;
  }

  #readHour(now: Date): Promise<HourState> {
    return readHour(this.#options.warehouse, this.#options.bucket, now);
  }

  #record(use: LedgerEntry): Promise<void> {
    const { warehouse, bucket } = this.#options;
    const horizon = addMilliseconds(use.now, -48 * 3_600_000);
    return warehouse.transaction(async (transaction) => {
      await transaction.execute('DELETE FROM request_uses WHERE used_at < $horizon::TIMESTAMP', { horizon });
      await transaction.execute(RECORD_USE, { bucket, ...use });
    });
  }
}

/** A clock that was set back must not keep a block alive. */
const isAlive = ({ reservedAt }: Block, now: Date): boolean =>
  reservedAt <= now && now < addMilliseconds(reservedAt, BLOCK_LIFE_MS);
