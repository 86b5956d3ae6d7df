import pLimit from 'p-limit';
import type { Client } from '../../src/api/client.js';
import { day } from '../../src/day.js';
import type { ExportOutcome, ExportTask } from '../../src/export/export.js';
import type { HistoryStore } from '../../src/history/store.js';
import { stateBeside } from '../open-state.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { NO_VIEWS } from '../../src/export/totals.js';
import { exportHistory } from './open-export.js';

export interface ExportFrom extends Partial<Omit<ExportTask, 'range' | 'client'>> {
  readonly history: HistoryStore;
  readonly client: Pick<Client, 'views'>;
  readonly from: string;
  readonly to: string;
}

/** An export of the days `from` to `to`, both included, as a project with the default settings and no limit does it. */
export const exportFrom = async ({ from, to, client, state, ...task }: ExportFrom): Promise<ExportOutcome> =>
  exportHistory({
    state: state ?? (await stateBeside(task.history)).state,
    project: 'prj_1',
    settleDays: 3,
    inTurn: pLimit(6),
    now: () => NOW,
    ...task,
    client: {
      views: (query, options) =>
        query.dateFrom < query.dateTo
          ? client.views(query, options)
          : // As the API documents: the servers of these tests answer with one day for any range.
            Promise.resolve({ totals: NO_VIEWS, views: [], hasMore: false }),
    },
    range: { first: day(from), last: day(to) },
  });
