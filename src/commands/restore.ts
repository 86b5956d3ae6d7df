import { max } from 'date-fns';
import { resolve } from 'node:path';
import { withParts, withWorker } from '../app/open.js';
import { type RestoredStores, restoreStores, savedState } from '../app/restore.js';
import { keepFilesPrivate, readWorkspace } from '../app/workspace.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { type DayStores, readDayRecords } from '../export/day-records.js';
import { relativePath } from '../files.js';
import { inSequence, moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { adopt as adoptState, whyIncomplete } from '../state/witness.js';
import { placeWords, recordDataset } from '../state/workspace.js';
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
    keepFilesPrivate();
    output.goesOnUnread = true;
    const listener = {
      onNotice: (words: string) => {
        output.data(words);
      },
    };
    const restored = await restoreStores(workspace, from, { now, signal, ...listener });
    await withParts(
      workspace,
      runtime,
      { command: 'restore', listener },
      async ({ state, sender, store }) => {
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
      },
    );
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

export const adopt = workspaceCommand('adopt', {
  summary: 'send from this copy of a workspace from now on',
  description:
    'A workspace sends jobs, messages, emails and posts from one machine and one data directory. A copy anywhere else exports and reports, and sends nothing, until this command makes it the one that sends. Stop the other copy first: neither knows about the other, so both would send. If the state here is older than what was sent, this says how much is missing from it, and the workspace sends again.',
  examples: `
  readership adopt       after moving it, or restoring it on a new machine`,
  environment: `Environment:
  READERSHIP_MACHINE     names this machine where its id changes: containers, CI`,
  run: async (options, runtime) => {
    const workspace = await readWorkspace(options, runtime, 'optional');
    const { witness } = workspace;
    await withWorker(workspace, runtime, { command: 'adopt' }, async ({ state, worker, here, recovered }) => {
      const carried = await savedState(workspace);
      const missing = await adoptState({ state, worker, witness, carried }, here);
      if (recovered !== undefined) runtime.output.data(recovered);
      runtime.output.data(`This workspace now sends from ${placeWords(here)}.`);
      if (missing === undefined) return;
      const { first, last } = missing;
      const which = first === last ? `Attempt ${first}` : `Attempts ${first} to ${last}`;
      runtime.output.data(
        `${which} to send something: unknown. No state has a record of what was sent, or whether it arrived. ` +
          'Check the pull requests and emails since the state was saved, and skip pages that have an agent job already: readership improve --skip PAGE',
      );
    });
    return 0;
  },
});
