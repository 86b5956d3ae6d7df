import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { type Document, LineCounter, parseDocument } from 'yaml';
import { ConfigurationError, messageOf } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { type Fault, faultsOf, strayYaml } from './faults.js';
import { type ProjectSettings, type Settings, settingsSchema } from './schema.js';

export const CONFIG_FILE = 'readership.yaml';
/** Beside the configuration. */
export const DOT_ENV = '.env';

/** Variables by name, such as `process.env`: the only place secrets come from. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A configuration, and the secrets that go with it. */
export interface Configuration {
  readonly settings: Settings;
  /** The directory that holds the file: relative paths in it are relative to this. */
  readonly directory: string;
  readonly environment: Environment;
}

/** Reads `readership.yaml`, or the file given. Throws a `ConfigurationError` that lists all problems with their lines. */
export async function loadSettings(
  file: string | undefined,
  workingDirectory: string,
): Promise<Pick<Configuration, 'settings' | 'directory'>> {
  const path = pathOf(file, workingDirectory);
  const directory = dirname(path);
  const settings = parseSettings(await readConfig(path, file === undefined), path);
  return { settings: withPaths(settings, directory), directory };
}

/** As `loadSettings`, with the environment and the `.env` beside the file; the environment wins. */
export async function loadConfiguration(
  file: string | undefined,
  workingDirectory: string,
  environment: Environment,
): Promise<Configuration> {
  return {
    ...(await loadSettings(file, workingDirectory)),
    environment: await readEnvironment(file, workingDirectory, environment),
  };
}

/** The environment, and what the `.env` beside the configuration adds to it. */
export async function readEnvironment(
  file: string | undefined,
  workingDirectory: string,
  environment: Environment,
): Promise<Environment> {
  const directory = dirname(pathOf(file, workingDirectory));
  return { ...(await readDotEnv(join(directory, DOT_ENV))), ...environment };
}

const pathOf = (file: string | undefined, workingDirectory: string): string =>
  resolve(workingDirectory, file ?? CONFIG_FILE);

/** Paths in a configuration are relative to it; a sitemap may be a web address as well. */
function withPaths(settings: Settings, directory: string): Settings {
  const { dataDir, improve, publish } = settings;
  const { sitemap } = improve;
  const isPath = sitemap !== undefined && !URL.canParse(sitemap);
  return {
    ...settings,
    dataDir: resolve(directory, dataDir),
    publish: publish.parquet === undefined ? {} : { parquet: resolve(directory, publish.parquet) },
    improve: isPath ? { ...improve, sitemap: resolve(directory, sitemap) } : improve,
  };
}

/** Throws a `ConfigurationError` when the key is not there, or cannot be one. */
export function apiKeyOf({ environment }: Configuration, project: ProjectSettings): string {
  const key = environment[project.apiKeyEnv];
  if (key === undefined || key === '')
    throw new ConfigurationError(
      `No API key for project ${project.id}: set ${project.apiKeyEnv} in the environment, or in .env beside ${CONFIG_FILE}. ` +
        `Keys are made on the API keys page of the dashboard.`,
    );
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new ConfigurationError(
      `The value of ${project.apiKeyEnv} holds a space or a character that no key has.`,
    );
  return key;
}

async function readConfig(path: string, isDefault: boolean): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError(
      isDefault
        ? `There is no ${CONFIG_FILE} in ${dirname(path)}. Two ways forward:\n` +
            `  readership init             write one, for your own documentation\n` +
            `  readership run --sandbox    see it all work on the embedded sandbox, without an account`
        : `Cannot read ${path}: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function parseSettings(text: string, path: string): Settings {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  if (document.errors.length > 0)
    throw faulty(
      path,
      document.errors.map(({ code, message, pos }) => ({
        line: lines.linePos(pos[0]).line,
        message: code === 'MULTIPLE_DOCS' ? 'a second document begins here; only one is read' : message,
      })),
    );
  const stray = strayYaml(document, lines);
  if (stray.length > 0) throw faulty(path, stray);
  const parsed = settingsSchema.safeParse(valuesOf(document, path) ?? {}, { reportInput: true });
  if (!parsed.success) throw faulty(path, faultsOf(parsed.error.issues, document, lines));
  return parsed.data;
}

function valuesOf(document: Document, path: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Aliases of aliases that would fill the memory.
    throw faulty(path, [{ line: 1, message: `cannot be read: ${messageOf(error)}` }]);
  }
}

function faulty(path: string, faults: readonly Fault[]): ConfigurationError {
  const list = faults.map(({ line, message }) => `  ${basename(path)}:${line}  ${message}`);
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
  return new ConfigurationError(`${path} has ${count}:\n${list.join('\n')}`);
}

async function readDotEnv(path: string): Promise<Environment> {
  try {
    return parseEnv((await readFile(path, 'utf8').catch(ignoreMissing)) ?? '');
  } catch (error) {
    throw new ConfigurationError(`Cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}
