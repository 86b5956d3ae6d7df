import type { Command } from 'commander';
import { relative, resolve } from 'node:path';
import { z } from 'zod';
import { reconcileEffects } from '../app/open.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { EffectsJournal } from '../warehouse/effects.js';
import { openWarehouse } from '../warehouse/open.js';
import { publish } from '../warehouse/published.js';
import { dayColumn, readSql, timestampColumn } from '../warehouse/query.js';
import { restore as restoreLive } from '../warehouse/restore.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { ExitCode } from '../app/runtime.js';
import { withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from '../app/runtime.js';
import { MAX_LOCK_WAIT_MS } from '../app/open.js';
import { readWorkspace, type WorkspaceOptions } from '../app/workspace.js';

interface RestoreOptions extends WorkspaceOptions {
  readonly from?: string;
}

export function declareRestore(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('restore'))
    .summary('put the newest whole state of the live database back')
    .description(
      'Replaces a live database that is missing, damaged or older than the history published from it: by default with that history, with --from by any other database of Readership, such as a backup. What was there is kept beside it, under a name with the time. When the live database is whole and up to date, nothing is changed.',
    )
    .option('--from <file>', 'restore this warehouse.duckdb or history.duckdb, whatever the live one holds')
    .addHelpText(
      'after',
      `
Examples:
  readership restore                                 after a message that says so
  readership restore --from /backup/history.duckdb   a state of your choice: docs/backup.md`,
    )
    .action((options: RestoreOptions) => act((runtime) => restore(options, runtime)));
}

async function restore(options: RestoreOptions, runtime: Runtime): Promise<ExitCode> {
  const { now, signal, output, workingDirectory } = runtime;
  const { dataDir, liveFile, historyFile, settings } = await readWorkspace(options, runtime);
  const hold = { command: 'readership restore', now, signal, maxWaitMs: MAX_LOCK_WAIT_MS };
  const from = options.from === undefined ? undefined : resolve(workingDirectory, options.from);
  const restored = await restoreLive({ liveFile, historyFile, from }, hold);
  const warehouse = await openWarehouse(liveFile, hold);
  let journal: EffectsJournal | undefined;
  try {
    journal = await EffectsJournal.open(dataDir);
    const { words } = await reconcileEffects(journal, warehouse, now());
    // Readers would otherwise see a newer state than the one that is added to from now on.
    if (restored?.historyAside !== undefined) await publish(warehouse, historyFile);
    const shown = (path: string) => relative(workingDirectory, path) || '.';
    if (restored === undefined)
      output.data(`${shown(liveFile)} is whole and up to date: nothing to restore.`);
    else output.data(`Restored ${shown(liveFile)} from ${shown(restored.source)}.`);
    for (const aside of [restored?.aside, restored?.historyAside])
      if (aside !== undefined) output.data(`Kept what was there before: ${shown(aside)}`);
    if (words !== undefined) output.data(words);
    const ids = settings.projects.map(({ id }) => id);
    for (const line of await stateLines(warehouse, ids, now())) output.data(line);
    return 0;
  } finally {
    await journal?.close();
    await warehouse.close();
  }
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
