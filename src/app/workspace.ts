import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { SharedLimit } from '../budget/ledger.js';
import {
  bucketNameOf,
  type Configuration,
  type Environment,
  lakeLocation,
  loadSettings,
  readEnvironment,
} from '../config/load.js';
import { type ProjectSettings, type Settings, settingsSchema } from '../config/schema.js';
import { formatShard, settingsOfShard, type Shard, shardOf } from '../config/shard.js';
import { MACHINE_VARIABLE } from '../effects/place.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { SANDBOX } from '../sandbox/state.js';
import type { Output } from '../terminal/output.js';
import type { LakePlace } from '../warehouse/lake/storage.js';
import { openOwnHistory } from '../warehouse/published.js';
import type { Reader } from '../warehouse/query.js';
import { possibleSecrets, refuseUnfitSecrets, secretsOf, withSender } from './secrets.js';

/** The parts of the process that a command uses, which tests can replace. */
export interface Runtime {
  readonly workingDirectory: string;
  readonly environment: Environment;
  readonly now: () => Date;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly output: Output;
}

/** Options of the commands that use a workspace: all except `init` and `sandbox`. */
export interface WorkspaceOptions {
  readonly config?: string;
  readonly sandbox?: boolean;
  readonly project?: string;
  readonly shard?: Shard;
}

/** The options as typed. */
export const optionsOf = ({ config, sandbox, shard }: WorkspaceOptions): string[] => [
  ...(config === undefined ? [] : ['--config', config]),
  ...(sandbox === true ? ['--sandbox'] : []),
  ...(shard === undefined ? [] : ['--shard', formatShard(shard)]),
];

/** Whether secrets are read, and must be readable. */
type Secrets = boolean | 'optional';

/**
 * What this process writes is for its user only, except files that are published. DuckDB keeps
 * creating logs, so it does not suffice to create files with their modes.
 */
export const keepPrivate = (): void => {
  process.umask(0o077);
};

/** The effective settings, and the locations of files. */
export interface Workspace {
  readonly settings: Settings;
  /** The shard whose projects `settings` contains; undefined for all projects. */
  readonly shard: Shard | undefined;
  /** The projects that the command applies to. */
  readonly projects: readonly ProjectSettings[];
  /** The directory that may contain the workspace's own `reports/` and `templates/`. */
  readonly workspaceDir: string | undefined;
  readonly dataDir: string;
  readonly liveFile: string;
  readonly historyFile: string;
  readonly reportsDir: string;
  readonly outboxDir: string;
  /** The location of the lake; undefined if there is none. */
  readonly lake: LakePlace | undefined;
  /** What READERSHIP_MACHINE names this machine; not from `.env`, which is copied with a workspace. */
  readonly machine: string | undefined;
  /** Undefined for the built-in sandbox, which has no configuration and no secrets. */
  readonly configuration: Configuration | undefined;
}

/**
 * Reads the configuration, or creates the one of the sandbox. Without `secrets`, none is read; if
 * they are optional, `.env` may be unreadable. `lake` replaces the configured lake. Throws a `ConfigurationError`.
 */
export async function readWorkspace(
  options: WorkspaceOptions,
  runtime: Runtime,
  secrets: Secrets = true,
  lake?: string,
): Promise<Workspace> {
  if (options.sandbox === true && options.config !== undefined)
    throw new ConfigurationError(
      '--sandbox and --config cannot be combined: the sandbox has its own settings.',
    );
  const configuration =
    options.sandbox === true ? undefined : await readConfiguration(options, runtime, secrets);
  const whole = configuration?.settings ?? sandboxSettings(runtime.workingDirectory);
  const { shard } = options;
  await refuseOtherSplit(whole.dataDir, shard);
  const settings = shard === undefined ? whole : settingsOfShard(whole, shard, configuration?.environment);
  if (configuration !== undefined) runtime.output.hide(secretsOf({ ...configuration, settings }));
  if (shard !== undefined && settings.projects.length === 0)
    runtime.output.note(
      `Shard ${formatShard(shard)} contains none of the configured projects: nothing to do.`,
    );
  const { dataDir } = settings;
  return {
    settings,
    shard,
    configuration,
    machine: runtime.environment[MACHINE_VARIABLE],
    projects: chooseProjects(whole, settings, options),
    workspaceDir: configuration?.directory,
    dataDir,
    liveFile: join(dataDir, 'warehouse.duckdb'),
    historyFile: join(dataDir, 'history.duckdb'),
    reportsDir: join(dataDir, 'reports'),
    outboxDir: join(dataDir, 'outbox'),
    lake: lakeOf(
      settings,
      lakeLocation(lake, runtime.workingDirectory),
      configuration?.environment ?? runtime.environment,
    ),
  };
}

/** How long a lake keeps replaced files, so that running queries can finish. */
const KEEP_REPLACED_MS = 7 * 86_400_000;

function lakeOf(
  { publish: { parquet, endpoint, region } }: Settings,
  location = parquet,
  environment: Environment,
): LakePlace | undefined {
  if (location === undefined) return undefined;
  const ofStore = Object.entries(environment).filter(([name]) => name.startsWith('AWS_'));
  return {
    location,
    endpoint,
    region,
    keepReplacedMs: KEEP_REPLACED_MS,
    credentials: Object.fromEntries(ofStore),
  };
}

async function readConfiguration(
  { config }: WorkspaceOptions,
  { workingDirectory, environment, output }: Runtime,
  secrets: Secrets,
): Promise<Configuration> {
  const isOptional = secrets === 'optional';
  const known =
    secrets === false
      ? environment
      : await readEnvironment(config, workingDirectory, environment, isOptional);
  // Problems quote the configuration, which may contain a key by mistake.
  output.hide(possibleSecrets(known));
  const { settings, directory, notices } = await loadSettings(config, workingDirectory);
  for (const notice of notices) output.note(notice);
  if (secrets === false) return { settings, directory, environment: {} };
  const configuration = { settings: withSender(settings, known), directory, environment: known };
  refuseUnfitSecrets(configuration);
  return configuration;
}

/** The hourly limits of all projects of a workspace. */
export function sharedLimits({
  settings,
  configuration,
}: Pick<Workspace, 'settings' | 'configuration'>): SharedLimit[] {
  const nameOf = (project: ProjectSettings) => bucketNameOf(project, configuration?.environment ?? {});
  return [...new Set(settings.projects.map(nameOf))].map((name) => {
    const projects = settings.projects.filter((project) => nameOf(project) === name);
    return { bucket: { name }, projects };
  });
}

/** The workspace with another limit on how long requests wait. */
export const waitingAtMost = (maxWaitMs: number, workspace: Workspace): Workspace => {
  const { settings } = workspace;
  return { ...workspace, settings: { ...settings, history: { ...settings.history, maxWait: maxWaitMs } } };
};

/**
 * The sandbox's agents finish within seconds, so they are polled often. Jobs are created, to show
 * every step.
 */
const sandboxSettings = (workingDirectory: string): Settings =>
  settingsSchema.parse({
    baseUrl: 'http://127.0.0.1',
    projects: [{ id: SANDBOX.projectId, name: SANDBOX.projectName, siteUrl: SANDBOX.siteUrl }],
    dataDir: resolve(workingDirectory, 'data/sandbox'),
    history: { requestsPerHour: 'unlimited' },
    improve: {
      mode: 'apply',
      minWeeklyViews: 60,
      readingShare: 1,
      exclude: ['/changelog/**', '/llms*.txt', '/**/openapi.*'],
    },
    poll: { minDelay: '500ms', maxDelay: '2s' },
    pullRequests: { host: 'github', url: 'https://code.example.com' },
    mail: { from: 'Readership <readership@example.com>', unsubscribe: 'docs-lead@example.com' },
    reports: { weekly: { to: ['docs@example.com'] } },
  });

function chooseProjects(
  { projects }: Settings,
  settings: Settings,
  { project: id, shard }: WorkspaceOptions,
): readonly ProjectSettings[] {
  if (id === undefined) return settings.projects;
  const chosen = settings.projects.filter((project) => project.id === id);
  if (chosen.length > 0) return chosen;
  if (shard !== undefined && projects.some((project) => project.id === id))
    throw new ConfigurationError(
      `Project ${id} is in another shard: --shard ${formatShard({ ...shard, index: shardOf(id, shard.count) })}.`,
    );
  const known = projects.map((project) => project.id).join(', ');
  throw new ConfigurationError(`No project ${id} in the configuration; there is ${known}.`);
}

/**
 * Throws a `ConfigurationError` if the data directory was split into shards differently: its days
 * would be loaded again, and its jobs and emails created again.
 */
async function refuseOtherSplit(dataDir: string, shard: Shard | undefined): Promise<void> {
  // A directory that cannot be read is reported when the database in it is opened.
  const entries = await readdir(dataDir).catch(() => []);
  const counts = new Set(entries.flatMap((name) => /^shard-\d+-of-(\d+)$/.exec(name)?.[1] ?? []));
  if (shard !== undefined && existsSync(join(dataDir, 'warehouse.duckdb')))
    throw new ConfigurationError(
      `${dataDir} contains one history of all projects. With --shard, a second history would load the same days and create the same jobs and emails again. ` +
        `Omit --shard, set another dataDir, or split the history as docs/scale.md explains.`,
    );
  const [other] = [...counts].filter((count) => count !== shard?.count.toString());
  if (other !== undefined)
    throw new ConfigurationError(
      `${dataDir} contains the histories of ${other} shards. Choose one: --shard I/${other}, with I from 1 to ${other}. ` +
        `To change the number of shards, see docs/scale.md.`,
    );
}

/** Runs `work` with the published history, which other processes cannot block. */
export async function withHistory(
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (history: Reader, workspace: Workspace) => Promise<ExitCode>,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime, 'optional');
  const history = await openOwnHistory(workspace.historyFile);
  try {
    return await work(history, workspace);
  } finally {
    history.close();
  }
}
