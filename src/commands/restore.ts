import { max } from 'date-fns';
import { resolve } from 'node:path';
import { MAX_LOCK_WAIT_MS, withParts } from '../app/open.js';
import { type RestoredStores, restoreStores } from '../app/restore.js';
import { keepFilesPrivate, readWorkspace } from '../app/workspace.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { type DayStores, readDayRecords } from '../export/day-records.js';
import { relativePath } from '../files.js';
import { inSequence, moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { whyIncomplete } from '../state/witness.js';
import { recordDataset } from '../state/workspace.js';
import { value, workspaceCommand } from './command.js';

export const restore = workspaceCommand('restore', {
  summary: 'restore the history and the state from a history file, such as a backup',
  description:
    'Restores the history and the state: jobs, emails and decisions. Every history.duckdb holds both. With --from, that file replaces both; without it, a state that is missing, damaged or older is restored from the history of this workspace. If the current state has more of what was sent, it is kept, so that nothing is sent twice. The replaced files are kept, with the time in their names. From Readership 0.4, give its data/warehouse.duckdb. Says what to do next.',
  options: {
    from: value('<file>', 'the history.duckdb to restore'),
  },
  examples: `
  readership restore                                 when a message suggests it
  readership restore --from /backup/history.duckdb   a backup: docs/backup.md
  readership restore --from data/warehouse.duckdb    a workspace of 0.4`,
  run: async (options, runtime) => {
    const { now, signal, output, workingDirectory } = runtime;
    const workspace = await readWorkspace(options, runtime, 'optional');
    const { settings, witness } = workspace;
    const from = options.from === undefined ? undefined : resolve(workingDirectory, options.from);
    const hold = { command: 'restore', maxWaitMs: MAX_LOCK_WAIT_MS };
    keepFilesPrivate();
    runtime.output.goesOnUnread = true;
    const listener = {
      onNotice: (words: string) => {
        output.data(words);
      },
    };
    const holder = { ...hold, ...listener, command: 'readership restore', now, signal };
    const restored = await restoreStores(workspace, from, holder);
    await withParts(workspace, runtime, { ...hold, listener }, async ({ state, sender, store }) => {
      for (const line of restoredLines(restored, (file) => relativePath(file, workingDirectory)))
        output.data(line);
      for (const { id } of settings.projects)
        output.words(await stateLine({ history: store, state }, id, now()));
      if (restored.history === undefined && restored.state === undefined) return;
      // The dataset may be that of a later state.
      await recordDataset(state, null);
      await store.write();
      const reason = whyIncomplete({ state, witness }) ?? sender.otherPlace();
      output.data(`${reason === undefined ? 'Next' : `${reason.message}\nThen`}: readership run`);
    });
    return 0;
  },
});

/** What was restored, and where the previous files are. */
function restoredLines({ history, state }: RestoredStores, shown: (file: string) => string): string[] {
  if (history === undefined && state === undefined)
    return ['The state is intact and up to date: nothing to restore.'];
  const kept = [history?.aside, state?.aside].filter((aside) => aside !== undefined);
  return [
    ...(history === undefined ? [] : [`Restored ${shown(history.path)} from ${shown(history.source)}.`]),
    state === undefined
      ? 'Kept the current state, which has at least as much of what was sent.'
      : `Restored ${shown(state.path)}: jobs, emails and decisions.`,
    ...kept.map((aside) => `Kept the previous file: ${shown(aside)}`),
  ];
}

/** The days of a project, and which of them the next run loads again. */
async function stateLine(stores: DayStores, project: string, now: Date): Promise<string> {
  const records = await readDayRecords(stores, project);
  const stored = [...records.values()].filter((record) => record.is_stored);
  const [first, last] = [stored[0]?.day, stored.at(-1)?.day];
  if (first === undefined || last === undefined)
    return `${project}: no days; the next run loads the whole history.`;
  const readAt = max(stored.map(({ attempted_at }) => attempted_at));
  const unsettled = stored.filter(({ state }) => state !== 'final').length;
  const gaps = daysBetween(first, last) + 1 - stored.length;
  const lastEnded = lastEndedDay(now);
  const load = [
    last < lastEnded && plainDayRange({ first: addDays(last, 1), last: lastEnded }),
    unsettled > 0 && `${counted(unsettled, 'day')} that may have changed`,
    gaps > 0 && counted(gaps, 'missing day'),
  ];
  const next = inSequence(load.filter((part) => part !== false)) || 'nothing';
  return `${project}: ${plainDayRange({ first, last })}, as of ${moment(readAt)}; the next run loads ${next}.`;
}
