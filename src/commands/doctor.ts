import { tzOffset } from '@date-fns/tz';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PausedError, TryLaterError } from '../api/errors.js';
import type { Pace } from '../api/retry.js';
import { openBudgets } from '../app/budgets.js';
import { channelsOf, connect, type Connection } from '../app/connection.js';
import {
  readWorkspace,
  type Runtime,
  waitingAtMost,
  type Workspace,
  type WorkspaceOptions,
} from '../app/workspace.js';
import { DOT_ENV, SMTP_URL_VARIABLE } from '../config/load.js';
import { isAddress } from '../config/recipients.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, lastEndedDay } from '../day.js';
import { ConfigurationError, LockedError, messageOf } from '../errors.js';
import { exists, freeDisk, ignoreMissing } from '../files.js';
import { bytes, counted } from '../format/numbers.js';
import { tryMailServer } from '../mail/transport.js';
import { findReport, listReports } from '../reports/definition.js';
import { refuseToForget } from '../warehouse/behind.js';
import { OlderSchemaError } from '../warehouse/migrate.js';
import { openWarehouse } from '../warehouse/open.js';
import { defineCommand, EMAIL_ENVIRONMENT, JSON_OUTPUT, value } from './command.js';
import {
  fail,
  type Finding,
  found,
  pass,
  printFindings,
  server,
  tryPlatform,
  type Verdict,
  warn,
} from './doctor-platform.js';

export const doctor = defineCommand({
  name: 'doctor',
  scope: 'workspace',
  summary: 'check configuration, keys, mail server, clock, database and disk',
  description:
    'Checks what Readership needs, with a line for each check: pass, warn or fail, and what to do. It sends one request for views per project, counted in the hourly limit if the database can be opened. It changes nothing else: an older database is not migrated, and permission to create agent jobs is not checked. With --url, it tries a platform with three requests, before anything is configured.',
  options: {
    url: value('<address>', 'try the platform at this address before configuring anything; needs --project'),
    project: value('<id>', 'only this project'),
    ...JSON_OUTPUT,
  },
  examples: `
  readership doctor                 after installing it, or when something seems wrong
  readership doctor --url https://platform.example.com --project prj_123   does it work with my platform?
  readership doctor --json | jq '.[] | select(.verdict != "pass")'`,
  environment: EMAIL_ENVIRONMENT,
  run: async ({ url, ...options }, runtime) => {
    const findings = await (url === undefined
      ? findingsOf(options, runtime)
      : findingsAt(url, options, runtime));
    if (options.json === true) runtime.output.json(findings);
    else printFindings(findings, runtime.output);
    return findings.some(({ verdict }) => verdict === 'fail') ? 1 : 0;
  },
});

function findingsAt(
  url: string,
  { project, config, sandbox, shard }: WorkspaceOptions,
  runtime: Runtime,
): Promise<Finding[]> {
  if (project === undefined || config !== undefined || sandbox === true || shard !== undefined)
    throw new ConfigurationError(
      '--url goes with --project, not with --config, --sandbox or --shard: readership doctor --url https://platform.example.com --project prj_123',
    );
  return tryPlatform(url, project, runtime);
}

async function findingsOf(options: WorkspaceOptions, runtime: Runtime): Promise<Finding[]> {
  try {
    return await examine(await readWorkspace(options, runtime), runtime);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return [{ check: 'configuration', verdict: 'fail', words: error.message }];
  }
}

const ANSWER_TIMEOUT_MS = 10_000;
const SCARCE_BYTES = 2 ** 30;
/** Publishing writes a copy of the history beside it. */
const COPIES = 2;

/** Checks everything that a night needs; a check that fails does not stop the others. */
async function examine(workspace: Workspace, runtime: Runtime): Promise<Finding[]> {
  const database = await openDatabase(workspace, runtime);
  const connection = await connect(workspace, runtime, { onSkew: () => undefined }, database.paceOf);
  const findings = await Promise.all([
    found('configuration', () => configuration(workspace)),
    found('secrets', () => secrets(workspace)),
    found('server', () => server(workspace.configuration?.settings.baseUrl, runtime)),
    ...workspace.projects.map((project) => found('key', () => key(project, connection, runtime))),
    found('reports', () => reports(workspace)),
    found('email', () => email(workspace, runtime)),
    ...channels(workspace),
    found('database', () => database.verdict),
    found('disk', () => disk(workspace)),
    found('time zones', timeZones),
  ]).finally(connection.close);
  try {
    await database.close();
    return findings;
  } catch (error) {
    const database = { check: 'database', ...fail(messageOf(error)) };
    return findings.map((finding) => (finding.check === 'database' ? database : finding));
  }
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
  // This user may read another user's file through its group.
  const others = found.uid === process.getuid?.() ? 0o077 : 0o007;
  if ((found.mode & others) === 0) return pass(`${file} cannot be read by others on this machine`);
  return warn(`Others on this machine may be able to read ${file}: chmod 600 '${file}'`);
}

async function key(
  project: ProjectSettings,
  { clientOf }: Connection,
  { now, signal }: Runtime,
): Promise<Verdict> {
  const day = lastEndedDay(now());
  const query = { dateFrom: day, dateTo: addDays(day, 1), limit: 1, offset: 0 };
  const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
  try {
    await clientOf(project).views(query, { signal: within });
    return pass(`${project.id}: ${project.apiKeyEnv} reads views; permission to create jobs not checked`);
  } catch (error) {
    const isLimited =
      error instanceof PausedError || (error instanceof TryLaterError && error.reason === 'rate-limited');
    const words = `${project.id}: ${messageOf(error)}`;
    return isLimited ? warn(words) : fail(words);
  }
}

/** Whether every report can be read, and each that has recipients exists. */
async function reports({ configuration, settings }: Workspace): Promise<Verdict> {
  const { reports, broken } = await listReports(configuration?.directory);
  if (broken[0] !== undefined) throw broken[0];
  for (const name of Object.keys(settings.reports.audiences))
    await findReport(name, configuration?.directory);
  return pass(reports.map(({ name }) => name).join(', '));
}

async function email(
  { configuration, settings, outboxDir }: Workspace,
  { signal }: Runtime,
): Promise<Verdict> {
  const url = configuration?.environment[SMTP_URL_VARIABLE] ?? '';
  if (url !== '') return pass(await tryMailServer(url, signal));
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

/** A database to count requests in, unless it is missing, in use, older or damaged. */
interface Database {
  readonly paceOf: (project: ProjectSettings) => Pace | undefined;
  readonly close: () => Promise<void>;
  readonly verdict: Verdict;
}

async function openDatabase(workspace: Workspace, { now, signal }: Runtime): Promise<Database> {
  const { liveFile, historyFile } = workspace;
  const closed = { paceOf: () => undefined, close: () => Promise.resolve() };
  try {
    refuseToForget(liveFile, historyFile);
    if (!(await exists(liveFile)))
      return {
        ...closed,
        verdict: warn('There is no database yet. Load the history: readership export, or readership run'),
      };
    const warehouse = await openWarehouse(liveFile, {
      ...{ command: 'readership doctor', now, signal, maxWaitMs: 0 },
      ...{ historyFile, mustBeMigrated: true },
    });
    const paceOf = openBudgets(warehouse, waitingAtMost(0, workspace), now, () => undefined);
    const verdict = pass(`${liveFile} opens, has the current version, and is not in use`);
    return { verdict, paceOf, close: () => warehouse.close() };
  } catch (error) {
    const isTemporary = error instanceof LockedError || error instanceof OlderSchemaError;
    return { ...closed, verdict: (isTemporary ? warn : fail)(messageOf(error)) };
  }
}

async function disk({ dataDir, liveFile }: Workspace): Promise<Verdict> {
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
