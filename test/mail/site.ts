import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import PostalMime from 'postal-mime';
import type { Day } from '../../src/day.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { recordStepEnd, recordStepStart } from '../../src/state/runs.js';
import type { State } from '../../src/state/state.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { stateBeside } from '../open-state.js';
import { tempDir } from '../temp-dir.js';
import { startMailServer } from './mail-server.js';

export type MailSite = Awaited<ReturnType<typeof mailSite>>;

/**
 * A mail server, and a new directory with a live database and its state, or a copy of the directory `like`. All are
 * closed after the test.
 */
export async function mailSite(like?: string) {
  const server = await startMailServer();
  const copy = like === undefined ? undefined : await tempDir();
  if (like !== undefined && copy !== undefined) await cp(like, copy, { recursive: true });
  const warehouse = await liveWarehouse(copy && join(copy, 'warehouse.duckdb'));
  const { state, sender, worker, here, close } = await stateBeside(warehouse);
  return {
    server,
    directory: dirname(warehouse.path),
    warehouse,
    state,
    sender,
    worker,
    here,
    closeState: close,
    /** Sends to the server. */
    transport: () => smtpTransport(`smtp://127.0.0.1:${server.port}`),
    /** What the server accepted for a recipient. */
    mailsTo: (recipient: string) =>
      Promise.all((server.accepted.get(recipient) ?? []).map((mail) => PostalMime.parse(mail))),
  };
}

/** Closes a site, and returns a directory for `mailSite` to copy. */
export async function keepSite({ warehouse, closeState, directory }: MailSite): Promise<string> {
  await closeState();
  await closeNow(warehouse);
  const kept = await tempDir();
  await cp(directory, kept, { recursive: true });
  return kept;
}

/** Records that the report step succeeded: pages that are there are rendered again only after later loads. */
export async function recordReported(state: State, now: Date): Promise<void> {
  await recordStepStart(state, 'run', 'report', now);
  await recordStepEnd(state, 'run', 'report', { outcome: 'done', summary: '', resume_at: null, now });
}

const VIEWS = `
  INSERT INTO page_views
  SELECT $project, day::DATE, '/page-' || page, '/page-' || page, 100 - page, 50 - page, 150 - 2 * page
  FROM generate_series($first::DATE, $last::DATE, INTERVAL 1 DAY) AS days (day), range(1, 9) AS pages (page)`;

const LOADS = `
  INSERT INTO day_loads BY NAME
  SELECT
    project, day, 'final' AS state, TIMESTAMP '2026-11-16 02:15:00' AS attempted_at,
    TIMESTAMP '2026-11-16 02:15:00' AS loaded_at, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai,
    sum(total)::BIGINT AS total, count(*) AS pages, 0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total
  FROM page_views WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE GROUP BY project, day`;

/** Loads days of a small site, both ends included. */
export const loadDays = (warehouse: Warehouse, first: Day, last: Day, project = 'prj_1'): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    for (const statement of [VIEWS, LOADS]) await transaction.execute(statement, { first, last, project });
  });
