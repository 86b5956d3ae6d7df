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

  /** Sends when allowed. Throws the signal's reason, without sending, if it aborts first. */
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

  /** A waiting request is counted as active before it resumes, so that no other request takes its place. */
  #letNextBegin(): void {
    while (this.#underWay < this.#allowed) {
      const begin = this.#waiting.shift();
      if (begin === undefined) return;
      this.#underWay++;
      begin();
    }
  }
}
