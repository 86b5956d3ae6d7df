import { addMilliseconds } from 'date-fns';
import { randomUUID } from 'node:crypto';
import pLimit, { type LimitFunction } from 'p-limit';
import { PausedError, SERVER_PAUSE } from '../api/errors.js';
import { LEASE_LIFE_MS, type RollingHour } from '../api/hour.js';
import type { Lease, Pace, Priority } from '../api/retry.js';
import { type Sleep, sleepFor } from '../sleep.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { forgetRefusals, openHour, readHour, RequestLedger, type RequestUse } from './ledger.js';

/** A requested wait up to this long limits a burst; a longer one means that the hour is used up. */
const BURST_WAIT_MS = 60_000;

/** The pause after a refusal without a wait, if no hourly limit determines when the next request is free. */
const DEFAULT_PAUSE_MS = 60_000;

/** The share of the hourly limit that days in progress may hold combined, which is the most a kill can waste. */
const PART_UNDER_WAY = 0.1;

/** The most requests that active leases hold combined, unless there is only one. */
const mostUnderWay = (limit: number | 'unlimited'): number =>
  limit === 'unlimited' ? Infinity : Math.floor(limit * PART_UNDER_WAY);

export interface BudgetOptions {
  readonly warehouse: Warehouse;
  readonly bucket: string;
  /** Requests in any rolling hour. */
  readonly limit: number | 'unlimited';
  /** How many of these a backfill must leave free now. */
  readonly reserve: (now: Date) => Promise<number>;
  /** How long a request may wait for its turn. */
  readonly maxWaitMs: number;
  readonly now: () => Date;
  readonly sleep?: Sleep | undefined;
  /** Called when requests wait: until when, and why. */
  readonly onWait?: ((until: Date, why: string) => void) | undefined;
}

/** An active lease. */
interface OpenLease {
  readonly priority: Priority;
  readonly signal: AbortSignal | undefined;
  /** Requests counted for it, sent or not; those that it returns are subtracted. */
  total: number;
  /** The latest of them, in the ledger; undefined while it waits, and without a limit. */
  entry: RequestUse | undefined;
}

/**
 * A budget of requests that survives restarts: what belongs together, such as the requests of a
 * day, is recorded in the ledger before the first of them is sent, so a crash can only overcount.
 * The hour is read once and then kept in memory: whoever holds the database is the only one to
 * write to it.
 */
export class RequestBudget implements Pace {
  readonly #open = new Set<OpenLease>();
  readonly #inTurn = pLimit(1);
  /** A project has one lease at a time in the common queue, so that the longest backfill does not come first. */
  readonly #turnsOf = new Map<string, LimitFunction>();
  #hour: Promise<RollingHour> | undefined;
  /** Wakes the lease that waits in `#roomBeside`: there is at most one, because leases begin in turn. */
  #wake: () => void = () => undefined;

  readonly #ledger: RequestLedger;

  constructor(private readonly options: BudgetOptions) {
    this.#ledger = new RequestLedger(options.warehouse, options.bucket);
  }

  /**
   * Resolves when that many requests are free. More than a tenth of the limit begins as soon as that
   * tenth is free, so that long days are read in parts. All leases in progress stay within that
   * tenth, unless there is only one.
   */
  async lease(requests: number, priority: Priority, signal?: AbortSignal, project = ''): Promise<Lease> {
    const inOwnTurn = this.#turnsOf.get(project) ?? pLimit(1);
    this.#turnsOf.set(project, inOwnTurn);
    if (priority === 'trial' && (await this.#isHeldByRefusal())) return this.#trial(signal);
    const lease: OpenLease = { priority, signal, total: 0, entry: undefined };
    const fewest = Math.min(requests, Math.max(1, mostUnderWay(this.options.limit)));
    try {
      const reserve = async () => {
        await this.#roomBeside(requests, signal);
        this.#open.add(lease);
        return this.#reserve(lease, requests, fewest);
      };
      const entry = await inOwnTurn(() => this.#inTurn(reserve));
      // Outside the turns, so that leases share a commit.
      await this.#ledger.record(entry);
    } catch (error) {
      await this.#end(lease);
      throw error;
    }
    const renewInTurn = pLimit(1);
    return {
      next: () => renewInTurn(() => this.#next(lease)),
      end: () => this.#end(lease),
    };
  }

  /**
   * A refusal for the rest of the hour means that other programs have used what we count as free, so
   * the ledger counts that as used now, and no second refusal follows.
   */
  async refused(retryAfterMs: number | undefined): Promise<void> {
    const { limit } = this.options;
    const now = this.options.now();
    const hour = await this.#readHour(now);
    const isBurst = retryAfterMs !== undefined && retryAfterMs <= BURST_WAIT_MS;
    const unknownUses = limit === 'unlimited' || isBurst ? 0 : Math.max(0, limit - hour.used(now));
    const until = addMilliseconds(now, retryAfterMs ?? (limit === 'unlimited' ? DEFAULT_PAUSE_MS : 0));
    hour.pause(until);
    hour.add(unknownUses, now);
    if (unknownUses > 0) hour.refuse(now);
    if (!isBurst) for (const { entry } of this.#open) if (entry !== undefined) entry.left = 0;
    await this.#ledger.record({ id: randomUUID(), at: now, left: unknownUses, pausedUntil: until });
  }

  /** Whether a request could be sent now if the platform had not refused one. */
  async #isHeldByRefusal(): Promise<boolean> {
    const { warehouse, bucket, limit, now } = this.options;
    const at = now();
    if (!(await this.#readHour(at)).isRefused(at)) return false;
    const own = await readHour(warehouse, bucket, at, { own: true });
    return limit === 'unlimited' || own.used(at) < limit;
  }

  /** One request in spite of a refusal, for a person who asks whether the platform answers again. If it does, the refusal is over. */
  async #trial(signal: AbortSignal | undefined): Promise<Lease> {
    const { warehouse, bucket, now } = this.options;
    const entry: RequestUse = { id: randomUUID(), at: now(), left: 1 };
    (await this.#readHour(entry.at)).add(1, entry.at);
    await this.#ledger.record(entry);
    const lease: OpenLease = { priority: 'trial', signal, total: 1, entry };
    return {
      next: () => this.#next(lease),
      end: () => this.#end(lease),
      answered: async () => {
        await forgetRefusals(warehouse, bucket);
        this.#hour = undefined;
      },
    };
  }

  /** Takes one request of a lease. A lease that needs more than expected, or has expired, first gets more. */
  async #next(lease: OpenLease): Promise<void> {
    const { limit, now } = this.options;
    for (;;) {
      lease.signal?.throwIfAborted();
      const at = now();
      // Of a trial, the second request waits as all others do.
      if (lease.priority === 'trial' && lease.entry !== undefined && lease.entry.left > 0) {
        lease.entry.left--;
        return;
      }
      const pausedUntil = (await this.#readHour(at)).pausedUntil(at);
      if (pausedUntil !== undefined) await this.#waitUntil(pausedUntil, at, SERVER_PAUSE, lease.signal);
      else if (limit === 'unlimited') return;
      else if (lease.entry !== undefined && lease.entry.left > 0 && isAlive(lease.entry, at)) {
        lease.entry.left--;
        return;
      } else {
        const unsent = await this.#giveBack(lease);
        const wanted = unsent === 0 ? Math.max(1, lease.total) : unsent;
        await this.#ledger.record(await this.#reserve(lease, wanted, 1));
      }
    }
  }

  async #end(lease: OpenLease): Promise<void> {
    try {
      await this.#giveBack(lease);
    } finally {
      this.#open.delete(lease);
      this.#wake();
    }
    if (this.#open.size === 0) await this.#ledger.record();
  }

  /** Returns how many requests of the lease were not sent. */
  async #giveBack(lease: OpenLease): Promise<number> {
    const { entry } = lease;
    if (entry === undefined || entry.left === 0) return 0;
    const unused = entry.left;
    entry.left = 0;
    lease.total -= unused;
    (await this.#readHour(entry.at)).add(-unused, entry.at);
    this.#ledger.takeBack(entry, unused);
    return unused;
  }

  /** Waits until others have ended, if too much would be in progress. An interruption ends them, too. */
  async #roomBeside(requests: number, signal: AbortSignal | undefined): Promise<void> {
    const underWay = () => [...this.#open].reduce((sum, { total }) => sum + total, 0);
    while (this.#open.size > 0 && underWay() + requests > mostUnderWay(this.options.limit)) {
      signal?.throwIfAborted();
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Counts up to `wanted` requests as used, as soon as `fewest` of them are free. Undefined without a limit. */
  async #reserve(lease: OpenLease, wanted: number, fewest: number): Promise<RequestUse | undefined> {
    const { limit, reserve: reserveAt, now } = this.options;
    if (limit === 'unlimited') return undefined;
    for (;;) {
      lease.signal?.throwIfAborted();
      const at = now();
      const hour = await this.#readHour(at);
      const reserve = lease.priority === 'backfill' ? await reserveAt(at) : 0;
      const allowed = Math.max(1, limit - reserve);
      const until = hour.nextFreeAt(allowed, Math.min(fewest, allowed), at);
      if (until <= at) {
        const requests = Math.min(wanted, allowed - hour.used(at));
        hour.add(requests, at);
        lease.total += requests;
        return (lease.entry = { id: randomUUID(), at, left: requests });
      }
      const reserved = reserve > 0 ? `, ${reserve} reserved for recent days` : '';
      const reached = `Hourly limit reached: ${hour.used(at)} of ${limit} used${reserved}.`;
      await this.#waitUntil(until, at, hour.isRefused(at) ? SERVER_PAUSE : reached, lease.signal);
    }
  }

  async #waitUntil(until: Date, now: Date, why: string, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaitMs, onWait, sleep = sleepFor } = this.options;
    const waitMs = until.getTime() - now.getTime();
    if (waitMs > maxWaitMs) throw new PausedError(why, until);
    onWait?.(until, why);
    await sleep(waitMs, signal);
  }

  #readHour(now: Date): Promise<RollingHour> {
    const { warehouse, bucket } = this.options;
    return (this.#hour ??= openHour(warehouse, bucket, now));
  }
}

/** A clock that was set back must not keep a lease alive. */
const isAlive = ({ at }: RequestUse, now: Date): boolean =>
  at <= now && now < addMilliseconds(at, LEASE_LIFE_MS);
