import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { whenAborted } from '../src/sleep.js';

it('an abort calls everything that waits for it, with one listener, which goes with the last of them', () => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const called: string[] = [];
  const wait = (name: string) => whenAborted(signal, () => called.push(name));
  const [first, second] = [wait('first'), wait('second')];
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  first();
  second();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  const [third, fourth] = [wait('third'), wait('fourth')];
  // Ending again changes nothing for the others.
  first();
  third();
  wait('fifth');
  stopping.abort();
  expect(called).toEqual(['fourth', 'fifth']);
  fourth();
});
