import pLimit, { type LimitFunction } from 'p-limit';

/** Initial number of concurrent requests. */
const FEW = 4;

/** Minimum number: with two, a request that is never answered does not block the others. */
const FEWEST = 2;

/** Slower responses do not raise the number of concurrent requests. */
const FAST_MS = 1_000;

/**
 * Limits concurrent requests: few at first, one more for each fast response up to `most`, and half
 * as many after a rate limit or an error of the server or the network.
 */
export class ConcurrencyLimit {
  readonly #inTurn: LimitFunction;

  constructor(
    private readonly most: number,
    private readonly clockMs: () => number = () => performance.now(),
  ) {
    this.#inTurn = pLimit(Math.min(FEW, most));
  }

  /** Requests allowed at once. */
  get allowed(): number {
    return this.#inTurn.concurrency;
  }

  /** Sends when allowed. Throws the signal's reason, without sending, if it aborts first. */
  run<Response extends { readonly status: number }>(
    send: () => Promise<Response>,
    signal?: AbortSignal,
  ): Promise<Response> {
    return this.#inTurn(async () => {
      signal?.throwIfAborted();
      const startedAtMs = this.clockMs();
      const response = await send().catch((error: unknown) => {
        if (signal?.aborted !== true) this.#slowDown();
        throw error;
      });
      if (response.status === 429 || response.status >= 500) this.#slowDown();
      else if (this.clockMs() - startedAtMs <= FAST_MS)
        this.#inTurn.concurrency = Math.min(this.most, this.allowed + 1);
      return response;
    });
  }

  #slowDown(): void {
    this.#inTurn.concurrency = Math.min(this.most, Math.max(FEWEST, Math.floor(this.allowed / 2)));
  }
}
