/** Requests under way at once to begin with. */
const FEW = 4;

/** And at least: one that is never answered leaves the way free for others. */
const FEWEST = 2;

/** Answers that take longer do not raise the number of requests. */
const FAST_MS = 1_000;

/**
 * Limits the requests under way at once: few to begin with, one more for each fast answer up to `most`, and half as many
 * after a rate limit or an error of the server or the network.
 */
export class ConcurrencyLimit {
  #allowed: number;
  #underWay = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly most: number,
    private readonly clockMs: () => number = () => performance.now(),
  ) {
    this.#allowed = Math.min(FEW, most);
  }

  /** Requests allowed at once. */
  get allowed(): number {
    return this.#allowed;
  }

  /** Sends once it may. Throws the reason of the signal, without sending, when that aborts before. */
  async run<Response extends { readonly status: number }>(
    send: () => Promise<Response>,
    signal?: AbortSignal,
  ): Promise<Response> {
    if (this.#underWay < this.#allowed) this.#underWay++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      signal?.throwIfAborted();
      const startedAtMs = this.clockMs();
      const response = await send().catch((error: unknown) => {
        if (signal?.aborted !== true) this.#slowDown();
        throw error;
      });
      if (response.status === 429 || response.status >= 500) this.#slowDown();
      else if (this.clockMs() - startedAtMs <= FAST_MS)
        this.#allowed = Math.min(this.most, this.#allowed + 1);
      return response;
    } finally {
      this.#underWay--;
      this.#letNextBegin();
    }
  }

  #slowDown(): void {
    this.#allowed = Math.min(this.most, Math.max(FEWEST, Math.floor(this.#allowed / 2)));
  }

  /** A request that waits is counted as under way before it goes on, so that no other one takes its place. */
  #letNextBegin(): void {
    while (this.#underWay < this.#allowed) {
      const begin = this.#waiting.shift();
      if (begin === undefined) return;
      this.#underWay++;
      begin();
    }
  }
}
