import { tzOffset } from '@date-fns/tz';
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PausedError, TryLaterError } from '../api/errors.js';
import { permissionOf } from '../app/acting.js';
import { channelsOf, connect, type Connection } from '../app/connection.js';
import { keepPrivate, type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import { DOT_ENV, SMTP_URL_VARIABLE } from '../config/load.js';
import { isAddress } from '../config/recipients.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, lastEndedDay } from '../day.js';
import { EffectsJournal } from '../effects/journal.js';
import { isSamePlace, placeOf, placeWords } from '../effects/place.js';
import { codeOf, LockedError, messageOf } from '../errors.js';
import { exists, freeDisk, ignoreMissing } from '../files.js';
import { expectAdditive } from '../export/totals.js';
import { bytes, counted } from '../format/numbers.js';
import { tryMailServer } from '../mail/transport.js';
import { listReports, noReport } from '../reports/definition.js';
import { readOwnNotes } from '../steps/notes.js';
import { refuseToForget } from '../warehouse/behind.js';
import { readPlace } from '../warehouse/identity.js';
import { OlderSchemaError } from '../warehouse/migrate.js';
import { openWarehouse } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { fail, type Finding, found, keyProblem, pass, type Verdict, warn } from './findings.js';
import { server } from './server.js';
import { futureWords, readFutureRows } from './status.js';

const ANSWER_TIMEOUT_MS = 10_000;
const SCARCE_BYTES = 2 ** 30;
/** Publishing everything writes the live file again, and a copy of it. */
const COPIES = 2;

/** Checks everything that a night needs; a check that fails does not stop the others. */
export async function examine(workspace: Workspace, runtime: Runtime): Promise<Finding[]> {
  keepPrivate();
  const { warehouse, verdict } = await openDatabase(workspace, runtime);
  // Read before the database is closed.
  const place = found('sends from', () => sendsFrom(workspace, warehouse, runtime));
  await place;
  const dates = await inFuture(warehouse, runtime.now());
  const quiet = { onSkew: () => undefined, onWait: () => undefined };
  const connection = await connect(waitingAtMost(0, workspace), runtime, quiet, warehouse);
  const keys = Promise.all(
    workspace.projects.map(async (project) => {
      const ofKey = await found('key', () => key(project, workspace, connection, runtime));
      if (ofKey.verdict === 'fail') return [ofKey];
      return [ofKey, await found('sums of days', () => sums(project, workspace, connection, runtime))];
    }),
  );
  const database = async () => {
    // Until the keys are checked, their requests are counted in it.
    await keys;
    await warehouse?.close();
    return verdict;
  };
  const findings = await Promise.all([
    found('configuration', () => configuration(workspace)),
    found('secrets', () => secrets(workspace)),
    found('server', () => server(workspace.configuration?.settings.baseUrl, runtime)),
    keys,
    found('reports', () => reports(workspace)),
    found('notes', async () => pass(counted((await readOwnNotes(workspace)).length, 'note'))),
    found('email', () => email(workspace, runtime)),
    ...channels(workspace),
    found('database', database),
    found('journal', () => journal(workspace)),
    place,
    found('dates', () => dates),
    found('disk', () => disk(workspace)),
    found('time zones', timeZones),
  ]).finally(connection.close);
  return findings.flat(2);
}

function configuration({ configuration, settings }: Workspace): Verdict {
  const place = configuration === undefined ? 'built in' : configuration.directory;
  return pass(`${place}; ${counted(settings.projects.length, 'project')}, data in ${settings.dataDir}`);
}

async function secrets({ configuration }: Workspace): Promise<Verdict> {
  if (configuration === undefined) return pass('none needed in the sandbox');
  const file = join(configuration.directory, DOT_ENV);
  const found = await stat(file).catch(ignoreMissing);
  if (found === undefined) return pass(`there is no ${file}; secrets come from the environment`);
  if (process.platform === 'win32') return pass(`${file}; on Windows, its permissions are not checked`);
  // This user may read another user's file through its group.
  const others = found.uid === process.getuid?.() ? 0o077 : 0o007;
  if ((found.mode & others) === 0) return pass(`${file} cannot be read by others on this machine`);
  return warn(`Others on this machine may be able to read ${file}: chmod 600 '${file}'`);
}

async function key(
  project: ProjectSettings,
  { settings, configuration }: Workspace,
  { clientOf }: Connection,
  { now, signal }: Runtime,
): Promise<Verdict> {
  const problem = keyProblem(project, settings, now(), configuration?.environment[project.apiKeyEnv]);
  if (problem?.verdict === 'fail') return problem;
  const day = lastEndedDay(now());
  const query = { dateFrom: day, dateTo: addDays(day, 1), limit: 1, offset: 0 };
  try {
    await clientOf(project).views(query, { signal: within(signal) });
    return (
      problem ??
      pass(`${project.id}: ${project.apiKeyEnv} reads views; permission to create jobs not checked`)
    );
  } catch (error) {
    return unread(project, error);
  }
}

/** Whether the days of a range add up: a platform that counts the day in `dateTo` would double every day. */
async function sums(
  project: ProjectSettings,
  { settings }: Workspace,
  { clientOf }: Connection,
  { now, signal }: Runtime,
): Promise<Verdict> {
  const day = addDays(lastEndedDay(now()), -settings.history.settleDays - 1);
  try {
    await expectAdditive(clientOf(project), day, { signal: within(signal) });
    return pass(`${project.id}: the totals of days add up to those of their range`);
  } catch (error) {
    return unread(project, error);
  }
}

const within = (signal: AbortSignal): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);

/** A project whose views could not be read; if only the hourly limit is the reason, nothing is wrong. */
function unread({ id }: ProjectSettings, error: unknown): Verdict {
  const isLimited =
    error instanceof PausedError || (error instanceof TryLaterError && error.reason === 'rate-limited');
  return (isLimited ? warn : fail)(`${id}: ${messageOf(error)}`);
}

/** Whether every report can be read, and each that has recipients exists. */
async function reports({ workspaceDir, settings }: Workspace): Promise<Verdict> {
  const { reports, broken } = await listReports(workspaceDir);
  if (broken[0] !== undefined) throw broken[0];
  const names = reports.map(({ name }) => name);
  const missing = Object.keys(settings.reports.audiences).find((name) => !names.includes(name));
  return missing === undefined ? pass(names.join(', ')) : fail(noReport(missing, names).message);
}

async function email(
  { configuration, settings, outboxDir }: Workspace,
  { signal }: Runtime,
): Promise<Verdict> {
  const url = configuration?.environment[SMTP_URL_VARIABLE] ?? '';
  const from = settings.mail?.from.address;
  const sender = from === undefined ? '' : `; emails come from ${from} (mail.from)`;
  if (url !== '') return pass((await tryMailServer(url, signal)) + sender);
  const audiences = [settings.alerts, ...Object.values(settings.reports.audiences).flat()];
  const isMailed = audiences.some(({ to }) => to.some(isAddress));
  if (configuration === undefined || !isMailed) return pass(`emails would be written to ${outboxDir}`);
  return warn(`Emails are only written to ${outboxDir}: to send them, set ${SMTP_URL_VARIABLE}.`);
}

/** Whether each channel has an address, and a secret where it needs one. Nothing is sent. */
const channels = (workspace: Workspace): Promise<Finding>[] =>
  [...channelsOf(workspace)].map(([name, channel]) =>
    found('channel', () =>
      'problem' in channel
        ? fail(`${name}: ${channel.problem}`)
        : pass(`${name}: posts to ${channel.kind} at ${channel.url.host}; nothing was sent`),
    ),
  );

/** The database, to count requests in, unless it is missing, in use, older or damaged. */
async function openDatabase(
  { liveFile, historyFile }: Workspace,
  { now, signal }: Runtime,
): Promise<{ warehouse?: Warehouse; verdict: Verdict }> {
  try {
    refuseToForget(liveFile, historyFile);
    if (!(await exists(liveFile)))
      return {
        verdict: warn('There is no database yet. Load the history: readership export, or readership run'),
      };
    const warehouse = await openWarehouse(liveFile, {
      command: 'readership doctor',
      now,
      signal,
      maxWaitMs: 0,
      historyFile,
      mustBeMigrated: true,
    });
    return {
      warehouse,
      verdict: pass(`${liveFile} opens, has the current version, and is not in use`),
    };
  } catch (error) {
    const isTemporary = error instanceof LockedError || error instanceof OlderSchemaError;
    return { verdict: (isTemporary ? warn : fail)(messageOf(error)) };
  }
}

/** Whether the effects journal is intact. Changes nothing, because another process may be writing it. */
async function journal({ dataDir }: Workspace): Promise<Verdict> {
  if (!(await exists(dataDir))) return pass('none yet');
  const { found, path } = await EffectsJournal.open(dataDir, false);
  return pass(found ? `${path} is intact` : 'none yet');
}

/** Whether jobs, messages and emails are sent from here: this is the right place, and its newest state. */
async function sendsFrom(
  workspace: Workspace,
  warehouse: Warehouse | undefined,
  { now, signal }: Runtime,
): Promise<Verdict> {
  const { dataDir, machine, liveFile } = workspace;
  if (warehouse === undefined && (await exists(liveFile)))
    return warn('unknown, because the database could not be opened');
  const place = warehouse && (await readPlace(warehouse));
  if (warehouse === undefined || place === undefined)
    return pass('not recorded yet: the first command that writes records it');
  const here = await placeOf(dataDir, machine);
  if (!isSamePlace(place, here))
    return warn(`${placeWords(place)}; this copy exports and reports, but sends nothing: readership adopt`);
  const journal = await EffectsJournal.open(dataDir, false);
  const refusal = await permissionOf({ ...workspace, warehouse, journal, here, now, signal }).refusal();
  return refusal === undefined ? pass(`here, ${placeWords(place)}`) : fail(refusal.message);
}

async function inFuture(warehouse: Warehouse | undefined, now: Date): Promise<Verdict> {
  const rows = warehouse === undefined ? [] : await readFutureRows(warehouse, now);
  return rows.length === 0 ? pass('none in the future') : warn(`In the future: ${futureWords(rows)}.`);
}

async function disk({ dataDir, liveFile }: Workspace): Promise<Verdict> {
  const place = (await exists(dataDir)) ? dataDir : dirname(dataDir);
  const isWritable = await access(place, constants.W_OK).then(
    () => true,
    (error: unknown) => codeOf(error) === 'ENOENT',
  );
  if (!isWritable) return fail(`This user cannot write to ${place}: change its owner, or set dataDir.`);
  const free = await freeDisk((await exists(dataDir)) ? dataDir : '.');
  const needed = COPIES * ((await stat(liveFile).catch(ignoreMissing))?.size ?? 0);
  const words = `${bytes(free)} free in ${dataDir}`;
  if (free < needed) return fail(`${words}: publishing needs ${bytes(needed)}. Make room.`);
  return free < SCARCE_BYTES ? warn(`${words}: make room before it runs out.`) : pass(words);
}

/** A Node.js built without time zone data treats every zone as UTC. */
function timeZones(): Verdict {
  const [january, july] = ['2026-01-01', '2026-07-01'].map((day) =>
    tzOffset('Europe/Zurich', new Date(`${day}T12:00:00Z`)),
  );
  return january === 60 && july === 120
    ? pass(`available, version ${process.versions['tz'] ?? 'unknown'}`)
    : fail('This Node.js has no time zone data: install one built with full-icu.');
}
