import { max } from 'date-fns';
import { stat } from 'node:fs/promises';
import { MAX_LOCK_WAIT_MS, withLiveFiles } from '../app/open.js';
import { adopt as adoptWorkspace, permissionOf } from '../app/permission.js';
import { keepPrivate, optionsOf, readWorkspace } from '../app/workspace.js';
import { lakeLocation, shownLocation } from '../config/load.js';
import { isLocal } from '../config/values.js';
import { addDays, daysBetween, lastEndedDay } from '../day.js';
import { ElsewhereError, placeWords } from '../effects/place.js';
import type { ExitCode } from '../errors.js';
import { readDayLedger } from '../export/ledger.js';
import { ignoreMissing } from '../files.js';
import { inSequence, moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { runPublish } from '../steps/publish.js';
import { StepRunner } from '../steps/step.js';
import { readWorkspaceRow } from '../warehouse/identity.js';
import { publish } from '../warehouse/publish.js';
import type { Reader } from '../warehouse/query.js';
import { restore as restoreLive } from '../warehouse/restore.js';
import { aLake, workspaceCommand, value } from './command.js';
import { conclude, withSteps } from './steps.js';

export const restore = workspaceCommand('restore', {
  summary: 'restore the live database from the published history or a backup',
  description:
    'Replaces a live database that is missing, damaged or older than the history published from it: by default with that history, with --from by another Readership database, such as a backup, or by a lake. A lake has the days but no jobs and emails; those come from the effects journal. The previous files are kept next to it, with the time in their names. Publishes what it restored, and says what to do next. If the live database is intact and up to date, nothing changes.',
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
    const parquet = isLake ? path : undefined;
    const workspace = await readWorkspace({ ...options, parquet }, runtime, 'optional');
    const { liveFile, historyFile, settings, lake, shard, machine } = workspace;
    const from = isLake && lake !== undefined ? { place: lake, shard, signal } : path;
    const hold = { command: 'readership restore', now, signal, maxWaitMs: MAX_LOCK_WAIT_MS };
    keepPrivate();
    runtime.output.goesOnUnread = true;
    const restored = await restoreLive({ liveFile, historyFile, from, machine }, hold);
    await withLiveFiles(workspace, runtime, hold, async ({ reconciled, ...live }) => {
      const { warehouse } = live;
      const shown = (file: string) => shownLocation(file, workingDirectory);
      if (restored === undefined)
        output.data(`${shown(liveFile)} is intact and up to date: nothing to restore.`);
      else output.data(`Restored ${shown(liveFile)} from ${shown(restored.source)}.`);
      for (const aside of [restored?.aside, restored?.historyAside])
        if (aside !== undefined) output.data(`Kept the previous file: ${shown(aside)}`);
      if (reconciled !== undefined) output.data(reconciled);
      for (const { id } of settings.projects) output.words(await stateLine(warehouse, id, now()));
      if (restored === undefined) return;
      await publish(warehouse, historyFile);
      const refusal = await permissionOf({ ...workspace, ...live, now, signal }).refusal();
      const run = ['readership run', ...optionsOf(options)].join(' ');
      output.data(refusal instanceof ElsewhereError ? `${refusal.message}\nThen: ${run}` : `Next: ${run}`);
    });
    return 0;
  },
});

const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(ignoreMissing))?.isDirectory() ?? false;

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
    'A workspace sends jobs, messages, emails and posts from one machine and one data directory. A copy anywhere else exports and reports, and sends nothing, until this command makes it the one that sends. Stop the other copy first: it finds out by itself only if both publish to the same lake.',
  examples: `
  readership adopt       after moving it, or restoring it on a new machine`,
  environment: `Environment:
  READERSHIP_MACHINE     names this machine where its id changes: containers, CI`,
  run: (options, runtime) =>
    withSteps<ExitCode>('adopt', { ...options, secrets: 'optional' }, runtime, async (context) => {
      await adoptWorkspace(context);
      const last = (await readWorkspaceRow(context.warehouse)).lakes?.at(-1);
      if (last !== undefined && last !== context.lake?.location)
        runtime.output.note(
          `This workspace last published to the lake ${last}, which publish.parquet does not name here. ` +
            'The other copy finds out only from a lake that publish.parquet names in both: set it, or make sure that the other copy never runs again.',
        );
      runtime.output.data(`This workspace now sends from ${placeWords(context.here)}.`);
      const runner = new StepRunner(context);
      await runPublish(runner, { ...context, elsewhere: undefined });
      return conclude(runner.outages, runtime);
    }),
});
