import type { DuckDBConnection } from '@duckdb/node-api';
import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { MAX_LOCK_WAIT_MS, withLedgers } from '../app/open.js';
import { readWorkspace } from '../app/workspace.js';
import { lakeLocation, shownLocation } from '../config/load.js';
import { isLocal } from '../config/values.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { ignoreMissing } from '../files.js';
import { moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { fillFromLake } from '../warehouse/lake/lake.js';
import { publish } from '../warehouse/publish.js';
import { dayColumn, readSql, timestampColumn } from '../warehouse/query.js';
import { restore as restoreLive } from '../warehouse/restore.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { aLake, defineCommand, value } from './command.js';

export const restore = defineCommand({
  name: 'restore',
  scope: 'workspace',
  summary: 'restore the live database from the published history or a backup',
  description:
    'Replaces a live database that is missing, damaged or older than the history published from it: by default with that history, with --from by another Readership database, such as a backup, or by a lake. A lake has the days but no jobs and emails; those come from the effects journal. The previous files are kept next to it, with the time in their names. If the live database is intact and up to date, nothing changes.',
  options: {
    from: value(
      '<place>',
      'restore this warehouse.duckdb or history.duckdb, or a lake (a directory or s3://bucket/prefix), even if the live database is intact',
      aLake,
    ),
  },
  examples: `
  readership restore                                 when a message suggests it
  readership restore --from /backup/history.duckdb   a backup: docs/backup.md
  readership restore --from s3://bucket/lake         the days of a lake`,
  run: async (options, runtime) => {
    const { now, signal, output, workingDirectory } = runtime;
    const path = lakeLocation(options.from, workingDirectory);
    const isLake = path !== undefined && (!isLocal(path) || (await isDirectory(path)));
    const workspace = await readWorkspace(isLake ? { ...options, parquet: path } : options, runtime);
    const { liveFile, historyFile, settings, lake, shard } = workspace;
    const fill = (connection: DuckDBConnection, copy: string): Promise<void> =>
      lake === undefined ? Promise.resolve() : fillFromLake(connection, copy, { place: lake, shard, signal });
    const from = isLake ? { location: path, fill } : path;
    const hold = { command: 'readership restore', now, signal, maxWaitMs: MAX_LOCK_WAIT_MS };
    const restored = await restoreLive({ liveFile, historyFile, from }, hold);
    await withLedgers(workspace, runtime, hold, async ({ warehouse, reconciled }) => {
      // Otherwise readers would see a history newer than the next one published.
      if (restored?.historyAside !== undefined) await publish(warehouse, historyFile);
      const shown = (file: string) => shownLocation(file, workingDirectory);
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
  },
});

const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(ignoreMissing))?.isDirectory() ?? false;

const STATE = readSql(import.meta.url, 'statements/restored-state.sql');
const stateRow = z.object({
  project: z.string(),
  first_day: dayColumn,
  last_day: dayColumn,
  unsettled: z.int(),
  loaded_at: timestampColumn,
});

/** The state of each project, and which days the next run loads again. */
async function stateLines(warehouse: Warehouse, projects: readonly string[], now: Date): Promise<string[]> {
  const rows = await warehouse.query(STATE, stateRow);
  const lastEnded = lastEndedDay(now);
  return projects.map((project) => {
    const row = rows.find((each) => each.project === project);
    if (row === undefined) return `${project}: no days; the next run loads the whole history.`;
    const range = plainDayRange({ first: row.first_day, last: row.last_day });
    const load = [
      daysBetween(row.last_day, lastEnded) > 0 &&
        plainDayRange({ first: addDays(row.last_day, 1), last: lastEnded }),
      row.unsettled > 0 && `${counted(row.unsettled, 'day')} that had not settled`,
    ];
    const next = load.filter((part) => part !== false).join(' and ') || 'nothing';
    return `${project}: ${range}, as of ${moment(row.loaded_at)}; the next run loads ${next}.`;
  });
}
