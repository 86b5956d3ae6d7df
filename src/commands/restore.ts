import { max } from 'date-fns';
import { resolve } from 'node:path';
import { withParts } from '../app/open.js';
import { type RestoredStores, restoreStores } from '../app/restore.js';
import { MAX_LOCK_WAIT_MS } from '../app/worker.js';
import { keepPrivate, readWorkspace } from '../app/workspace.js';
import { shownPath } from '../config/load.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { type LedgerStores, readDayLedger } from '../export/ledger.js';
import { inSequence, moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { saveState } from '../state/saved.js';
import { whyIncomplete } from '../state/sender.js';
import { recordDataset } from '../state/workspace.js';
import { publish } from '../warehouse/publish.js';
import { workspaceCommand, value } from './command.js';

export const restore = workspaceCommand('restore', {
  summary: 'restore the live database and the state from a history: the published one, or a backup',
  description:
    'Each history.duckdb carries the state too: the jobs, emails and decisions. Replaces a live database or a state that is missing, damaged or older than the published history, by what that holds; with --from, by what another history holds. A state that knows more of what was sent than that history is kept, so that nothing is sent twice. The previous files are kept next to the restored ones, with the time in their names. Publishes what it restored, and says what to do next. If both are intact and up to date, nothing changes.',
  options: {
    from: value('<file>', 'restore this history.duckdb, even if the live database is intact'),
  },
  examples: `
  readership restore                                 when a message suggests it
  readership restore --from /backup/history.duckdb   a backup: docs/backup.md`,
  run: async (options, runtime) => {
    const { now, signal, output, workingDirectory } = runtime;
    const workspace = await readWorkspace(options, runtime, 'optional');
    const { historyFile, settings, witness } = workspace;
    const from = options.from === undefined ? undefined : resolve(workingDirectory, options.from);
    const hold = { command: 'restore', maxWaitMs: MAX_LOCK_WAIT_MS };
    keepPrivate();
    runtime.output.goesOnUnread = true;
    const restored = await restoreStores(workspace, from, {
      ...hold,
      command: 'readership restore',
      now,
      signal,
    });
    const listener = {
      onNotice: (words: string) => {
        output.data(words);
      },
    };
    await withParts(workspace, runtime, { ...hold, listener }, async ({ state, sender, store }) => {
      for (const line of restoredLines(restored, (file) => shownPath(file, workingDirectory)))
        output.data(line);
      for (const { id } of settings.projects)
        output.words(await daysLine({ reader: store, state }, id, now()));
      if (restored.live === undefined && restored.state === undefined) return;
      // The dataset may be that of a later state.
      await recordDataset(state, null);
      await publish(store, historyFile, { state: saveState(state, historyFile) });
      const reason = whyIncomplete({ state, witness }) ?? sender.otherPlace();
      output.data(`${reason === undefined ? 'Next' : `${reason.message}\nThen`}: readership run`);
    });
    return 0;
  },
});

/** What was restored, and where the previous files are. */
function restoredLines({ live, state }: RestoredStores, shown: (file: string) => string): string[] {
  if (live === undefined && state === undefined)
    return ['The live database and the state are intact and up to date: nothing to restore.'];
  const kept = [live?.aside, live?.historyAside, state?.aside].filter((aside) => aside !== undefined);
  return [
    ...(live === undefined ? [] : [`Restored ${shown(live.liveFile)} from ${shown(live.source)}.`]),
    state === undefined
      ? 'Kept the state, which knows at least as much of what was sent.'
      : `Restored ${shown(state.path)}: jobs, emails and decisions.`,
    ...kept.map((aside) => `Kept the previous file: ${shown(aside)}`),
  ];
}

/** The days of a project, and which of them the next run loads again. */
async function daysLine(stores: LedgerStores, project: string, now: Date): Promise<string> {
  const ledger = await readDayLedger(stores, project);
  const stored = [...ledger.values()].filter((record) => record.is_stored);
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
