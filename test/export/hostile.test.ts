import pLimit from 'p-limit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { addDays, day, daysIn } from '../../src/day.js';
import { ReadershipError } from '../../src/errors.js';
import { readDayRecords } from '../../src/export/day-records.js';
import type { HistoryStore } from '../../src/history/store.js';
import { openStore } from '../../src/app/open.js';
import { type OpenState, openTestState } from '../open-state.js';
import { openClient } from '../api/open-client.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { serve, type TestServer } from '../serve.js';
import { exportFrom } from './export-from.js';
import { HOSTILE_ANSWERS, ROWS, wellAnswered } from './hostile-answers.js';
import { storedDays } from './stored-days.js';

const TEN_DAYS = daysIn({ first: day('2026-11-01'), last: day('2026-11-10') });

describe('ten days, one of which is always answered with', () => {
  let history: HistoryStore;
  let opened: OpenState;
  let server: TestServer;
  beforeAll(async () => {
    opened = await openTestState(undefined, { isOfFile: true });
    history = openStore(
      { historyFile: join(opened.dataDir, 'history.duckdb') },
      opened.state,
      opened.worker,
      {},
    );
    // Each answer has its own project and its own day.
    server = await serve(({ url }, response) => {
      const index = Number(url.pathname.split('/')[3]);
      const answer = HOSTILE_ANSWERS[index]?.[2];
      if (url.searchParams.get('dateFrom') === badDay(index)) void answer?.(response, url);
      else wellAnswered(response);
    });
  });
  afterAll(async () => {
    await history.close();
    await opened.close();
  });

  const badDay = (index: number) => addDays(day('2026-11-01'), index % TEN_DAYS.length);

  /** Exports as often as needed while the platform requests pauses. */
  async function exportAll(project: string): Promise<void> {
    let now = NOW;
    for (let run = 0; run < 4; run++) {
      const client = openClient(server.baseUrl, {
        ...{ projectId: project, now: () => now },
        retries: { retries: 1, minDelayMs: 1, maxDelayMs: 5 },
        limits: { responseTimeoutMs: 1_000 },
      });
      const task = { history, state: opened.state, client, project, inTurn: pLimit(4), now: () => now };
      const { stopped } = await exportFrom({ ...task, from: '2026-11-01', to: '2026-11-10' });
      if (!(stopped instanceof ReadershipError) || stopped.resumeAt === undefined) {
        if (stopped !== undefined) throw stopped as Error;
        return;
      }
      now = stopped.resumeAt;
    }
  }

  it.each(HOSTILE_ANSWERS.map(([name, outcome], index) => ({ name, outcome, index })))(
    '$name: the other nine are loaded',
    async ({ outcome, index }) => {
      const project = String(index);
      await exportAll(project);
      const records = await readDayRecords({ history, state: opened.state }, project);
      const bad = badDay(index);
      for (const other of TEN_DAYS.filter((one) => one !== bad))
        expect(records.get(other), other).toMatchObject({ state: 'final', pages: ROWS.length });
      expect(records.get(bad)?.state).toBe(outcome);
    },
  );

  it('anything wrong: the record says what', async () => {
    const failed = (await storedDays(history)).filter(({ state }) => state !== 'final');
    expect(failed.length).toBeGreaterThan(30);
    for (const { failure } of failed) expect(failure).toMatch(/\w{3}/);
  });
});
