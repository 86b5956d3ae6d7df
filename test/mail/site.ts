import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import PostalMime from 'postal-mime';
import type { Day } from '../../src/day.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { recordStepEnd, recordStepStart } from '../../src/state/runs.js';
import type { State } from '../../src/state/state.js';
import type { HistoryStore } from '../../src/history/store.js';
import { filledIn } from '../../src/history/duckdb.js';
import { closeNow, execute, newStore } from '../open-history.js';
import { stateBeside } from '../open-state.js';
import { type GivenParts, partsOf } from '../steps/parts-of.js';
import { tempDir } from '../temp-dir.js';
import { startMailServer } from './mail-server.js';

export type MailSite = Awaited<ReturnType<typeof mailSite>>;

/**
 * A mail server, and a new directory with a history and its state, or a copy of the directory `like`. All are
 * closed after the test.
 */
export async function mailSite(like?: string) {
  const server = await startMailServer();
  const copy = like === undefined ? undefined : await tempDir();
  if (like !== undefined && copy !== undefined) await cp(like, copy, { recursive: true });
  const history = await newStore(copy && join(copy, 'history.duckdb'));
  const { state, sender, worker, here, close } = await stateBeside(history);
  const directory = dirname(history.path);
  return {
    server,
    directory,
    history,
    state,
    sender,
    worker,
    here,
    closeState: close,
    /** Sends to the server. */
    transport: () => smtpTransport(`smtp://127.0.0.1:${server.port}`),
    /** The parts of a step that works with it at a time, or with what is given. */
    partsAt: (time: string, { workspace, outgoing, session, ...given }: GivenParts = {}) =>
      partsOf(history, {
        state,
        sender,
        workspace: {
          workspaceDir: directory,
          historyFile: history.path,
          reportsDir: join(directory, 'pages'),
          ...workspace,
        },
        outgoing: { transport: () => smtpTransport(`smtp://127.0.0.1:${server.port}`), ...outgoing },
        session: { now: () => new Date(time), ...session },
        ...given,
      }),
    /** What the server accepted for a recipient. */
    mailsTo: (recipient: string) =>
      Promise.all((server.accepted.get(recipient) ?? []).map((mail) => PostalMime.parse(mail))),
  };
}

/** Closes a site, and returns a directory for `mailSite` to copy. */
export async function keepSite({ history, closeState, directory }: MailSite): Promise<string> {
  await closeState();
  await closeNow(history);
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
  INSERT INTO days BY NAME
  SELECT
    project, day, 'final' AS state, TIMESTAMP '2026-11-16 02:15:00' AS first_loaded_at, first_loaded_at AS loaded_at,
    loaded_at AS checked_at, 0 AS nights_in_doubt, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai,
    sum(total)::BIGINT AS total, count(*) AS pages, 0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total
  FROM page_views WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE GROUP BY project, day`;

/** Loads days of a small site, both ends included. */
export async function loadDays(history: HistoryStore, first: Day, last: Day, project = 'prj_1') {
  for (const statement of [VIEWS, LOADS])
    await execute(history, filledIn(statement, { first, last, project }));
}
