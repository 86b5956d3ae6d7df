import { expect, test } from 'vitest';
import type { Client } from '../../src/api/client.js';
import { PausedError } from '../../src/api/errors.js';
import { readUnfinishedDays } from '../../src/state/days.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { exportHistory, openExport, PROJECT } from './open-export.js';
import { expectWhole } from './stored-days.js';

test.each([
  ['is interrupted', new Error('interrupted')],
  ['has to wait for the platform', new PausedError('The platform refused a request.', NOW)],
])('what was read of a long day is kept when an export %s, and no page is read twice', async (_, reason) => {
  const opened = await openExport({ days: 1, pages: 2_000, concurrency: 1 });
  const { state, history, task } = opened;
  const yesterday = opened.yesterday();
  const range = { first: yesterday, last: yesterday };
  const offsets: number[] = [];
  const load = async (stopAt: number) => {
    const interruption = new AbortController();
    const views: Client['views'] = (query, options) => {
      if (query.limit > 1) offsets.push(query.offset);
      if (query.offset === stopAt) {
        if (!(reason instanceof PausedError)) interruption.abort(reason);
        return Promise.reject(reason);
      }
      return task.client.views(query, options);
    };
    const { signal } = interruption;
    return exportHistory({ ...task, client: { views }, range, signal });
  };
  await load(1_000);
  expect(readUnfinishedDays(state, PROJECT)).toEqual(new Map([[yesterday, 1_000]]));
  // Before it reads anything new.
  await load(1_000);
  expect(readUnfinishedDays(state, PROJECT).get(yesterday)).toBe(1_000);
  offsets.length = 0;
  expect((await load(-1)).results).toMatchObject([{ outcome: 'added', rows: 2_000 }]);
  expect(offsets).toEqual([1_000, 1_250, 1_500, 1_750]);
  expect(readUnfinishedDays(state, PROJECT).size).toBe(0);
  await expectWhole(history);
});
