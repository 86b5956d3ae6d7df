import { describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from '../../src/api/concurrency.js';

/** Requests that a test answers one by one, each `elapsedMs` after it was sent. */
function open(most: number) {
  let now = 0;
  const limit = new ConcurrencyLimit(most, () => now);
  const underWay: ((answer: { status: number } | Error) => void)[] = [];
  const send = (signal?: AbortSignal) =>
    limit.run(
      () =>
        new Promise<{ status: number }>((resolve, reject) => {
          underWay.push((answer) => {
            if (answer instanceof Error) reject(answer);
            else resolve(answer);
          });
        }),
      signal,
    );
  const answer = async (status: number | Error, elapsedMs = 10) => {
    await new Promise(setImmediate);
    now += elapsedMs;
    underWay.shift()?.(status instanceof Error ? status : { status });
    await new Promise(setImmediate);
  };
  return { limit, underWay, send, answer };
}

describe('concurrent requests', () => {
  it('are few at first, and one more after each fast answer, up to the limit', async () => {
    const { limit, underWay, send, answer } = open(6);
    const sent = Array.from({ length: 12 }, () => send());
    await new Promise(setImmediate);
    expect(underWay).toHaveLength(4);
    await answer(200);
    expect(underWay).toHaveLength(5);
    for (let time = 0; time < 3; time++) await answer(200);
    expect(limit.allowed).toBe(6);
    while (underWay.length > 0) await answer(200);
    expect(await Promise.all(sent)).toHaveLength(12);
  });

  it('never exceed a limit that is below the initial number', async () => {
    const { underWay, send, answer } = open(2);
    void Promise.all([send(), send(), send()]);
    await new Promise(setImmediate);
    expect(underWay).toHaveLength(2);
    await answer(200);
    expect(underWay).toHaveLength(2);
  });

  it('stay the same after a slow answer, and increase after any other', async () => {
    const { limit, send, answer } = open(16);
    void send();
    await answer(200, 2_000);
    expect(limit.allowed).toBe(4);
    void send();
    await answer(404);
    expect(limit.allowed).toBe(5);
  });

  it.each([429, 500, 503, new Error('reset')])(
    'are halved after %s, but never fewer than two',
    async (failure) => {
      const { limit, send, answer } = open(16);
      for (let time = 0; time < 4; time++) {
        const sent = send();
        await answer(200);
        await sent;
      }
      const allowed: number[] = [];
      for (let time = 0; time < 4; time++) {
        const sent = send().catch(() => undefined);
        await answer(failure);
        await sent;
        allowed.push(limit.allowed);
      }
      expect(allowed).toEqual([4, 2, 2, 2]);
    },
  );

  it('are not sent once the signal aborts, and give up their place', async () => {
    const { underWay, send, answer } = open(1);
    const abort = new AbortController();
    const [first, second, third] = [send(), send(abort.signal), send()];
    const rejection = expect(second).rejects.toThrow('interrupted');
    abort.abort(new Error('interrupted'));
    await answer(200);
    await rejection;
    await answer(200);
    expect(await Promise.all([first, third])).toHaveLength(2);
    expect(underWay).toHaveLength(0);
  });
});
