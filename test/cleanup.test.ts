import { expect, it } from 'vitest';
import { afterTest, cleanUpAfterTest } from './cleanup.js';

it('a cleanup that fails fails the test, and the others run nevertheless', async () => {
  const ended: string[] = [];
  afterTest(() => ended.push('opened first'));
  afterTest(() => {
    throw new Error('cannot be closed');
  });
  afterTest(() => ended.push('opened last'));
  await expect(cleanUpAfterTest()).rejects.toThrow('cannot be closed');
  expect(ended).toEqual(['opened last', 'opened first']);
});
