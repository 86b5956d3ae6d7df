import { createHash } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { CONFIG_FILE, type Configuration, type Environment } from '../config/load.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { MACHINE_VARIABLE } from '../state/workspace.js';
import { witnessOf } from '../state/witness.js';
import { ConfigurationError } from '../errors.js';
import { behindLinks } from '../files.js';
import { SANDBOX_ENVIRONMENT, sandboxSettings } from '../sandbox/state.js';
import type { WorkspaceView } from '../steps/step.js';
import type { Output } from '../terminal/output.js';
import {
  type Credentials,
  credentialsOf,
  readConfiguration,
  type SecretsMode,
  secretsOf,
  withoutSecrets,
} from './secrets.js';

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
  /** The directory to publish a dataset in, instead of the configured one. */
  readonly parquet?: string;
}

/** The options as typed. */
export const optionsOf = ({ config, sandbox }: WorkspaceOptions): string[] => [
  ...(config === undefined ? [] : ['--config', config]),
  ...(sandbox === true ? ['--sandbox'] : []),
];

/**
 * What this process writes is for its user only, except the history and the dataset. DuckDB keeps
 * creating logs, so it does not suffice to create files with their modes.
 */
export const keepFilesPrivate = (): void => {
  process.umask(0o077);
};

/** All that is known before the database is opened. */
export interface Workspace extends WorkspaceView {
  readonly dataDir: string;
  readonly outboxDir: string;
  /** The file beside the configuration that knows the last attempt to send something; undefined for the built-in sandbox. */
  readonly witness: string | undefined;
  /** What READERSHIP_MACHINE names this machine; not from `.env`, which is copied with a workspace. */
  readonly machine: string | undefined;
  /** What was read from its file; undefined for the built-in sandbox. */
  readonly configuration: Configuration | undefined;
  readonly credentials: Credentials;
  /** How long requests for views wait for the end of a pause. */
  readonly maxWaitMs: number;
}

const MAX_WAIT_MS = 120_000;

/** Reads the configuration, or creates the one of the sandbox. Throws a `ConfigurationError`. */
export async function readWorkspace(
  options: WorkspaceOptions,
  runtime: Runtime,
  secrets: SecretsMode = 'required',
): Promise<Workspace> {
  if (options.sandbox === true && options.config !== undefined)
    throw new ConfigurationError(
      '--sandbox and --config cannot be combined: the sandbox has its own settings.',
    );
  const { workingDirectory, environment, output } = runtime;
  const configuration =
    options.sandbox === true ? undefined : await readConfiguration(options.config, runtime, secrets);
  const known = configuration === undefined ? [] : secretsOf(configuration);
  output.hide(known);
  const settings = configuration?.settings ?? sandboxSettings(workingDirectory);
  const files = filesIn(settings.dataDir);
  const dataset = datasetOf(options, settings, configuration, runtime);
  return {
    settings,
    settingsDigest: digestOf([settings, dataset, known]),
    configuration,
    machine: environment[MACHINE_VARIABLE],
    projects: projectsOf(settings, options.project),
    workspaceDir: configuration?.directory,
    invocation: { sandbox: options.sandbox, config: otherName(options.config) },
    ...files,
    credentials: credentialsOf(settings, configuration?.environment ?? SANDBOX_ENVIRONMENT, files.outboxDir),
    maxWaitMs: MAX_WAIT_MS,
    witness: configuration && witnessOf(configuration.file),
    dataset,
  };
}

/** `publish.then` is about the configured directory. It gets no secret, and nothing from `.env`. */
function datasetOf(
  { parquet }: WorkspaceOptions,
  { projects, publish }: Settings,
  configuration: Configuration | undefined,
  { workingDirectory, environment }: Runtime,
): Workspace['dataset'] {
  const location = parquet === undefined ? publish.parquet : resolve(workingDirectory, parquet);
  if (location === undefined) return undefined;
  if (configuration === undefined || publish.then === undefined || location !== publish.parquet)
    return { location, projects, then: undefined };
  const { settings, directory } = configuration;
  const then = { command: publish.then, directory, environment: withoutSecrets(environment, settings) };
  return { location, projects, then };
}

const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64');

/** The name of a configuration in its directory, unless it is the usual one. */
const otherName = (config: string | undefined): string | undefined =>
  config === undefined || basename(config) === CONFIG_FILE ? undefined : basename(config);

/** All projects, or the chosen one. Throws a `ConfigurationError` if there is no such project. */
function projectsOf({ projects }: Settings, id: string | undefined): readonly ProjectSettings[] {
  const chosen = projects.filter((project) => id === undefined || project.id === id);
  if (chosen.length > 0) return chosen;
  const known = projects.map((project) => project.id).join(', ');
  throw new ConfigurationError(`No project ${id} in the configuration; there is ${known}.`);
}

/** A message that names files as in the workspace, without the directories of this machine, which visitors need not know. */
export const withoutDirectories = ({ workspaceDir, dataDir }: Workspace, words: string): string =>
  words.replaceAll(`${workspaceDir ?? dataDir}/`, '').replaceAll(`${dataDir}/`, '');

/** The files of a data directory. Throws a `ConfigurationError` if DuckDB would misread their paths. */
function filesIn(dataDir: string) {
  if (dataDir.includes('?'))
    throw new ConfigurationError(
      `The data directory ${dataDir} cannot be used: DuckDB misreads a path with “?”. Rename the directory, or set dataDir to another one.`,
    );
  return {
    dataDir,
    historyFile: behindLinks(join(dataDir, 'history.duckdb')),
    reportsDir: join(dataDir, 'reports'),
    outboxDir: join(dataDir, 'outbox'),
  };
}
