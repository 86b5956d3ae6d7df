import pLimit from 'p-limit';
import type { Client } from '../api/client.js';
import type { Priority } from '../api/retry.js';

/** A day under way. */
export interface Admitted {
  /** Requests that it still needs, as far as we know. */
  left: number;
}

/**
 * Lets days begin, in their order, so that those under way can all be read to their end: a walk that the budget stops
 * half-way has spent its requests for nothing.
 */
export class Admission {
  readonly #underWay = new Set<Admitted>();
  readonly #inTurn = pLimit(1);
  #tellEnd: () => void = () => undefined;

  constructor(private readonly client: Pick<Client, 'hasRoom' | 'room'>) {}

  /** Resolves when a day of so many requests may begin. Throws when that takes longer than anybody here waits. */
  enter(requests: number, priority: Priority, signal: AbortSignal): Promise<Admitted> {
    return this.#inTurn(async () => {
      while (this.#underWay.size > 0) {
        const oneEnds = new Promise<void>((resolve) => (this.#tellEnd = resolve));
        if (await this.client.hasRoom(requests + this.#promised(), priority)) return this.#begin(requests);
        await oneEnds;
      }
      signal.throwIfAborted();
      await this.client.room(requests, priority, signal);
      return this.#begin(requests);
    });
  }

  leave(admitted: Admitted): void {
    this.#underWay.delete(admitted);
    this.#tellEnd();
  }

  #begin(requests: number): Admitted {
    const admitted = { left: requests };
    this.#underWay.add(admitted);
    return admitted;
  }

  #promised(): number {
    return [...this.#underWay].reduce((sum, { left }) => sum + left, 0);
  }
}
