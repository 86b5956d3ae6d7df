import type { Command } from 'commander';
import { relative, resolve } from 'node:path';
import { z } from 'zod';
import { MAX_LOCK_WAIT_MS, withLedgers } from '../app/open.js';
import type { ExitCode } from '../errors.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { publish } from '../warehouse/published.js';
import { dayColumn, readSql, timestampColumn } from '../warehouse/query.js';
import { restore as restoreLive } from '../warehouse/restore.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type Act, withWorkspaceOptions } from './options.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';

interface RestoreOptions extends WorkspaceOptions {
  readonly from?: string;
}

export function declareRestore(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('restore'))
    .summary('restore the live database from the published history or a backup')
    .description(
      'Replaces a live database that is missing, damaged or older than the history published from it: by default with that history, with --from by any other database of Readership, such as a backup. The previous files are kept beside it, with the time in their names. If the live database is intact and up to date, nothing changes.',
    )
    .option(
      '--from <file>',
      'restore this warehouse.duckdb or history.duckdb, even if the live database is intact',
    )
    .addHelpText(
      'after',
      `
Examples:
  readership restore                                 when a message says so
  readership restore --from /backup/history.duckdb   a backup: docs/backup.md`,
    )
    .action((options: RestoreOptions) => act((runtime) => restore(options, runtime)));
}

async function restore(options: RestoreOptions, runtime: Runtime): Promise<ExitCode> {
  const { now, signal, output, workingDirectory } = runtime;
  const workspace = await readWorkspace(options, runtime);
  const { liveFile, historyFile, settings } = workspace;
  const from = options.from === undefined ? undefined : resolve(workingDirectory, options.from);
  const hold = { command: 'readership restore', now, signal, maxWaitMs: MAX_LOCK_WAIT_MS };
  const restored = await restoreLive({ liveFile, historyFile, from }, hold);
  await withLedgers(workspace, runtime, hold, async ({ warehouse, reconciled }) => {
    // Readers would otherwise keep a history newer than the live database that is published next.
    if (restored?.historyAside !== undefined) await publish(warehouse, historyFile);
    const shown = (path: string) => relative(workingDirectory, path) || '.';
    if (restored === undefined)
      output.data(`${shown(liveFile)} is intact and up to date: nothing to restore.`);
    else output.data(`Restored ${shown(liveFile)} from ${shown(restored.source)}.`);
    for (const aside of [restored?.aside, restored?.historyAside])
      if (aside !== undefined) output.data(`Kept the previous file: ${shown(aside)}`);
    if (reconciled !== undefined) output.data(reconciled);
    const ids = settings.projects.map(({ id }) => id);
    for (const line of await stateLines(warehouse, ids, now())) output.data(line);
  });
  return 0;
}

const STATE = readSql(import.meta.url, 'statements/restored-state.sql');
const stateRow = z.object({
  project: z.string(),
  first_day: dayColumn,
  last_day: dayColumn,
  unsettled: z.int(),
  loaded_at: timestampColumn,
});

/** What state each project has, and which days the next run loads again. */
async function stateLines(warehouse: Warehouse, projects: readonly string[], now: Date): Promise<string[]> {
  const rows = await warehouse.query(STATE, stateRow);
  const lastEnded = lastEndedDay(now);
  return projects.map((project) => {
    const row = rows.find((each) => each.project === project);
    if (row === undefined) return `${project}: no days; the next run loads the whole history.`;
    const range = plainDayRange({ first: row.first_day, last: row.last_day });
    const missing = Math.max(0, daysBetween(row.last_day, lastEnded));
    const load = [
      ...(missing > 0 ? [plainDayRange({ first: addDays(row.last_day, 1), last: lastEnded })] : []),
      ...(row.unsettled > 0 ? [`${counted(row.unsettled, 'day')} that had not settled`] : []),
    ];
    const next = load.length === 0 ? 'nothing' : load.join(' and ');
    return `${project}: ${range}, as of ${moment(row.loaded_at)}; the next run loads ${next}.`;
  });
}
