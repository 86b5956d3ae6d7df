import { max } from 'date-fns';
import { resolve } from 'node:path';
import { MAX_LOCK_WAIT_MS, withStored } from '../app/open.js';
import { keepPrivate, readWorkspace } from '../app/workspace.js';
import { shownPath } from '../config/load.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { placeWords, sendFrom } from '../effects/place.js';
import type { ExitCode } from '../errors.js';
import { readDayLedger } from '../export/ledger.js';
import { inSequence, moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { runPublish } from '../steps/publish.js';
import { StepRunner } from '../steps/step.js';
import { setFinishedVersion } from '../warehouse/dataset/dataset.js';
import { publish } from '../warehouse/publish.js';
import type { Reader } from '../warehouse/query.js';
import { restore as restoreLive } from '../warehouse/restore.js';
import { workspaceCommand, value } from './command.js';
import { conclude, withSteps } from './steps.js';

export const restore = workspaceCommand('restore', {
  summary: 'restore the live database from the published history or a backup',
  description:
    'Replaces a live database that is missing, damaged or older than the history published from it: by default with that history, with --from by another Readership database, such as a backup. Jobs and emails that it lacks come from the effects journal. The previous files are kept next to it, with the time in their names. Publishes what it restored, and says what to do next. If the live database is intact and up to date, nothing changes.',
  options: {
    from: value(
      '<file>',
      'restore this warehouse.duckdb or history.duckdb, even if the live database is intact',
    ),
  },
  examples: `
  readership restore                                 when a message suggests it
  readership restore --from /backup/history.duckdb   a backup: docs/backup.md`,
  run: async (options, runtime) => {
    const { now, signal, output, workingDirectory } = runtime;
    const workspace = await readWorkspace(options, runtime, 'optional');
    const { liveFile, historyFile, settings } = workspace;
    const from = options.from === undefined ? undefined : resolve(workingDirectory, options.from);
    const hold = { command: 'restore', maxWaitMs: MAX_LOCK_WAIT_MS };
    keepPrivate();
    runtime.output.goesOnUnread = true;
    const restored = await restoreLive(
      { liveFile, historyFile, from },
      { ...hold, command: 'readership restore', now, signal },
    );
    await withStored(workspace, runtime, hold, async ({ store, effects: { elsewhere }, putRight }) => {
      const shown = (file: string) => shownPath(file, workingDirectory);
      if (restored === undefined)
        output.data(`${shown(liveFile)} is intact and up to date: nothing to restore.`);
      else output.data(`Restored ${shown(liveFile)} from ${shown(restored.source)}.`);
      for (const aside of [restored?.aside, restored?.historyAside])
        if (aside !== undefined) output.data(`Kept the previous file: ${shown(aside)}`);
      if (putRight !== undefined) output.data(putRight);
      for (const { id } of settings.projects) output.words(await stateLine(store, id, now()));
      if (restored === undefined) return;
      // The dataset may be that of a later state.
      await setFinishedVersion(store, null);
      await publish(store, historyFile);
      output.data(`${elsewhere === undefined ? 'Next' : `${elsewhere.message}\nThen`}: readership run`);
    });
    return 0;
  },
});

/** The days of a project, and which of them the next run loads again. */
async function stateLine(reader: Reader, project: string, now: Date): Promise<string> {
  const ledger = await readDayLedger(reader, project);
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

export const adopt = workspaceCommand('adopt', {
  summary: 'send from this copy of a workspace from now on',
  description:
    'A workspace sends jobs, messages, emails and posts from one machine and one data directory. A copy anywhere else exports and reports, and sends nothing, until this command makes it the one that sends. Stop the other copy first: neither knows about the other, so both would send.',
  examples: `
  readership adopt       after moving it, or restoring it on a new machine`,
  environment: `Environment:
  READERSHIP_MACHINE     names this machine where its id changes: containers, CI`,
  run: (options, runtime) =>
    withSteps<ExitCode>('adopt', { ...options, secrets: 'optional' }, runtime, async (parts) => {
      const { store, effects, session } = parts;
      await sendFrom(effects.here, effects.journal, store, session.now());
      runtime.output.data(`This workspace now sends from ${placeWords(effects.here)}.`);
      const runner = new StepRunner(parts);
      await runPublish(runner, { ...parts, effects: { ...effects, elsewhere: undefined } });
      return conclude(runner.outages, runtime);
    }),
});
