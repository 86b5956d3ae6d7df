import { once } from 'node:events';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { timeLimit } from '../src/sleep.js';

it('a time limit is kept, whatever the garbage collector does, and ends early with the signal', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const limit = timeLimit(100, new AbortController().signal);
  await setImmediate();
  collectGarbage();
  await once(limit, 'abort');
  expect(limit.reason).toEqual(new Error('it took too long'));
  const stopped = new AbortController();
  const early = timeLimit(60_000, stopped.signal);
  stopped.abort('stopped');
  expect(early.reason).toBe('stopped');
});

it('a time limit that passed while the process was suspended leaves time for what arrived meanwhile', async () => {
  const limit = timeLimit(10);
  // Nothing of the event loop runs, as while the process is stopped.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
  await setTimeout(50);
  expect(limit.aborted).toBe(false);
  await once(limit, 'abort');
});
