import { addMilliseconds } from 'date-fns';
import { sleepFor } from '../sleep.js';
import { PausedError } from './errors/paused-error.js';

/**
 * What a request is for: `urgent` ones keep the latest days right, `backfill` ones fill in the past and leave room for
 * the others.
 */
export type Priority = 'urgent' | 'backfill';

/** Decides when the next request may be sent. One pace is shared by all that use the same key. */
export interface Pace {
  /** Resolves when one request may be sent; throws when that would take too long, or the signal aborts. */
  readonly before: (priority: Priority, signal?: AbortSignal) => Promise<void>;
  /** Whether that many requests could be sent now, one after another. None is taken. */
  readonly hasRoom: (requests: number, priority: Priority) => Promise<boolean>;
  /** Waits, as `before` does, until that many could be sent, or as many as ever can. None is taken. */
  readonly room: (requests: number, priority: Priority, signal?: AbortSignal) => Promise<void>;
  /** The server answered 429, with or without saying how long to wait: nobody asks before that is over. */
  readonly refused: (retryAfterMs: number | undefined) => Promise<void>;
}

/** A pace that sends at once, and after a refusal not before the server said; it waits up to `maxWaitMs` for that. */
export function pauseWhenRefused(now: () => Date, maxWaitMs: number): Pace {
  let pausedUntil = new Date(0);
  const pauseOver = async (signal: AbortSignal | undefined) => {
    const waitMs = pausedUntil.getTime() - now().getTime();
    if (waitMs > maxWaitMs)
      throw new PausedError('The server asked not to be asked for a while.', pausedUntil);
    if (waitMs > 0) await sleepFor(waitMs, signal);
  };
  return {
    before: (_, signal) => pauseOver(signal),
    hasRoom: () => Promise.resolve(pausedUntil <= now()),
    room: (_requests, _priority, signal) => pauseOver(signal),
    refused: (retryAfterMs = 0) => {
      pausedUntil = addMilliseconds(now(), retryAfterMs);
      return Promise.resolve();
    },
  };
}
