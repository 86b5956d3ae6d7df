import { join } from 'node:path';
import type { SharedLimit } from '../budget/ledger.js';
import { bucketNameOf, type Configuration, type Environment, lakeLocation } from '../config/load.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import {
  formatShard,
  refuseOtherSplit,
  settingsOfShard,
  type Shard,
  shardOf,
  shardOption,
} from '../config/shard.js';
import { MACHINE_VARIABLE } from '../effects/place.js';
import { ConfigurationError } from '../errors.js';
import { behindLinks } from '../files.js';
import { sandboxSettings } from '../sandbox/state.js';
import type { WorkspaceView } from '../steps/step.js';
import type { Output } from '../terminal/output.js';
import { readConfiguration, type SecretsMode, secretsOf } from './secrets.js';

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
  /** A lake to use instead of the configured one. */
  readonly parquet?: string | undefined;
}

/** The options as typed. */
export const optionsOf = ({ config, sandbox, shard }: WorkspaceOptions): string[] => [
  ...(config === undefined ? [] : ['--config', config]),
  ...(sandbox === true ? ['--sandbox'] : []),
  ...(shard === undefined ? [] : ['--shard', formatShard(shard)]),
];

/**
 * What this process writes is for its user only, except files that are published. DuckDB keeps
 * creating logs, so it does not suffice to create files with their modes.
 */
export const keepPrivate = (): void => {
  process.umask(0o077);
};

/** All that is known before the database is opened. */
export interface Workspace extends WorkspaceView {
  readonly dataDir: string;
  readonly liveFile: string;
  readonly outboxDir: string;
  /** What READERSHIP_MACHINE names this machine; not from `.env`, which is copied with a workspace. */
  readonly machine: string | undefined;
  /** Undefined for the built-in sandbox, which has no configuration and no secrets. */
  readonly configuration: Configuration | undefined;
  /** The shards that have projects, if it was read as a whole and is split into several. */
  readonly parts?: readonly Workspace[];
}

/**
 * Reads the configuration, or creates the one of the sandbox. Throws a
 * `ConfigurationError`, also if the projects are split into shards and neither a shard nor a project was chosen.
 */
export async function readWorkspace(
  options: WorkspaceOptions,
  runtime: Runtime,
  secrets?: SecretsMode,
): Promise<Workspace> {
  const workspace = await readAllParts(options, runtime, secrets);
  const { shard, settings, parts } = workspace;
  if (parts !== undefined)
    throw new ConfigurationError(
      `The projects are split into ${settings.shards} shards. Choose one: --shard I/${settings.shards}, with I from 1 to ${settings.shards}. ` +
        `Only sql, report, serve, mcp and status can read all of them.`,
    );
  if (shard !== undefined && settings.projects.length === 0)
    runtime.output.note(`Shard ${formatShard(shard)} has no projects: nothing to do.`);
  return workspace;
}

/** As `readWorkspace`, to read all shards at once, unless one is chosen. */
export async function readAllParts(
  options: WorkspaceOptions,
  runtime: Runtime,
  secrets: SecretsMode = 'required',
): Promise<Workspace> {
  const whole = await readWhole(options, runtime, secrets);
  const { shards: count, projects } = whole.settings;
  const chosen = shardOfOptions(options, count);
  if (count === undefined || chosen !== undefined) return ofShard(whole, chosen, options, runtime);
  const indexes = [...new Set(projects.map(({ id }) => shardOf(id, count)))].sort((one, two) => one - two);
  const parts = indexes.map((index) => ofShard(whole, { index, count }, options, runtime));
  return { ...whole, parts: await Promise.all(parts) };
}

/** A message that names files as in the workspace, without the directories of this machine, which visitors need not know. */
export const placeless = ({ workspaceDir, dataDir }: Workspace, words: string): string =>
  words.replaceAll(`${workspaceDir ?? dataDir}/`, '').replaceAll(`${dataDir}/`, '');

/** The parts to read one after another: the shards, or the workspace itself. */
export const shardsOf = (workspace: Workspace): readonly Workspace[] => workspace.parts ?? [workspace];

/** The part that has a project; the first if none has. */
export function partOf(workspace: Workspace, project: string): Workspace {
  const [first = workspace, ...others] = shardsOf(workspace);
  return others.find(({ projects }) => projects.some(({ id }) => id === project)) ?? first;
}

/** The chosen shard, or that of the chosen project. Throws a `ConfigurationError` if there is no such shard. */
function shardOfOptions({ shard, project }: WorkspaceOptions, count: number | undefined): Shard | undefined {
  if (count === undefined) return shard;
  if (shard === undefined)
    return project === undefined ? undefined : { index: shardOf(project, count), count };
  if (shard.count === count) return shard;
  throw new ConfigurationError(
    `There is no shard ${formatShard(shard)}, because the configuration says shards: ${count}. To change it, see docs/scale.md.`,
  );
}

/** How long a lake keeps replaced files, so that running queries can finish. */
const KEEP_REPLACED_MS = 7 * 86_400_000;

/** The workspace of all projects. */
async function readWhole(
  options: WorkspaceOptions,
  runtime: Runtime,
  secrets: SecretsMode,
): Promise<Workspace> {
  if (options.sandbox === true && options.config !== undefined)
    throw new ConfigurationError(
      '--sandbox and --config cannot be combined: the sandbox has its own settings.',
    );
  const { workingDirectory, environment } = runtime;
  const configuration =
    options.sandbox === true ? undefined : await readConfiguration(options.config, runtime, secrets);
  const settings = configuration?.settings ?? sandboxSettings(workingDirectory);
  const { parquet, endpoint, region } = settings.publish;
  const location = lakeLocation(options.parquet, workingDirectory) ?? parquet;
  const known = Object.entries(configuration?.environment ?? environment);
  const credentials = Object.fromEntries(known.filter(([name]) => name.startsWith('AWS_')));
  return {
    settings,
    shard: undefined,
    option: '',
    configuration,
    machine: environment[MACHINE_VARIABLE],
    projects: settings.projects,
    workspaceDir: configuration?.directory,
    ...filesIn(settings.dataDir),
    lake:
      location === undefined
        ? undefined
        : { location, endpoint, region, keepReplacedMs: KEEP_REPLACED_MS, credentials },
  };
}

/** The files of a data directory. Throws a `ConfigurationError` if DuckDB would misread their paths. */
function filesIn(dataDir: string) {
  if (dataDir.includes('?'))
    throw new ConfigurationError(
      `The data directory ${dataDir} cannot be used: DuckDB misreads a path with “?”. Rename the directory, or set dataDir to another one.`,
    );
  return {
    dataDir,
    liveFile: behindLinks(join(dataDir, 'warehouse.duckdb')),
    historyFile: behindLinks(join(dataDir, 'history.duckdb')),
    reportsDir: join(dataDir, 'reports'),
    outboxDir: join(dataDir, 'outbox'),
  };
}

/** The workspace of a shard, or of all projects, and of the chosen one of them. */
async function ofShard(
  whole: Workspace,
  shard: Shard | undefined,
  { project: id }: WorkspaceOptions,
  { output }: Runtime,
): Promise<Workspace> {
  const { configuration } = whole;
  await refuseOtherSplit(whole.dataDir, shard);
  const settings =
    shard === undefined ? whole.settings : settingsOfShard(whole.settings, shard, configuration?.environment);
  if (configuration !== undefined) output.hide(secretsOf({ ...configuration, settings }));
  const projects = settings.projects.filter((project) => id === undefined || project.id === id);
  if (id !== undefined && projects.length === 0) throw noProject(id, whole.settings, shard);
  return { ...whole, settings, shard, option: shardOption(shard), projects, ...filesIn(settings.dataDir) };
}

function noProject(id: string, { projects }: Settings, shard: Shard | undefined): ConfigurationError {
  const known = projects.map((project) => project.id);
  return new ConfigurationError(
    shard !== undefined && known.includes(id)
      ? `Project ${id} is in another shard: --shard ${formatShard({ ...shard, index: shardOf(id, shard.count) })}.`
      : `No project ${id} in the configuration; there is ${known.join(', ')}.`,
  );
}

/** The hourly limits of all projects of a workspace. */
export function sharedLimits({
  settings,
  configuration,
}: Pick<Workspace, 'settings' | 'configuration'>): SharedLimit[] {
  const nameOf = (project: ProjectSettings) => bucketNameOf(project, configuration?.environment ?? {});
  return [...new Set(settings.projects.map(nameOf))].map((name) => {
    const projects = settings.projects.filter((project) => nameOf(project) === name);
    return { bucket: name, projects };
  });
}

/** The workspace with another limit on how long requests wait. */
export const waitingAtMost = (maxWaitMs: number, workspace: Workspace): Workspace => {
  const { settings } = workspace;
  return { ...workspace, settings: { ...settings, history: { ...settings.history, maxWait: maxWaitMs } } };
};
