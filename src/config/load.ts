import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { codeOf, ConfigurationError } from '../errors.js';
import { readText } from '../files.js';
import { parseYaml } from './problems.js';
import { type ProjectSettings, type Settings, settingsSchema } from './schema.js';

export const CONFIG_FILE = 'readership.yaml';
/** Next to the configuration. */
export const DOT_ENV = '.env';
export const SMTP_URL_VARIABLE = 'READERSHIP_SMTP_URL';
export const CODE_HOST_TOKEN_VARIABLE = 'READERSHIP_CODE_HOST_TOKEN';

/** Variables by name, such as `process.env`: the only source of secrets. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A configuration and its secrets. */
export interface Configuration {
  readonly settings: Settings;
  readonly file: string;
  /** The directory of the file, to which its relative paths refer. */
  readonly directory: string;
  readonly environment: Environment;
}

/** Reads `readership.yaml`, or the file given. Throws a `ConfigurationError` that lists all problems with their lines. */
export async function loadSettings(
  file: string | undefined,
  workingDirectory: string,
): Promise<Pick<Configuration, 'settings' | 'file' | 'directory'>> {
  const path = pathOf(file, workingDirectory);
  const directory = dirname(path);
  const settings = parseYaml(await readConfig(path, file === undefined), path, settingsSchema);
  return { settings: withPaths(settings, directory), file: path, directory };
}

/**
 * The variables of the `.env` next to the configuration, and the environment, which takes precedence even
 * with an empty value. Notes that, because it is easily overlooked.
 */
export async function readEnvironment(
  file: string | undefined,
  workingDirectory: string,
  environment: Environment,
  note: (words: string) => void,
  dotEnv: 'required' | 'optional' = 'required',
): Promise<Environment> {
  const inFile = await readDotEnv(join(dirname(pathOf(file, workingDirectory)), DOT_ENV), dotEnv);
  for (const name of Object.keys(inFile))
    if (environment[name] === '' && inFile[name] !== '')
      note(`${name} is empty in the environment, which hides its value in ${DOT_ENV}: unset it to use that.`);
  return trimmed({ ...inFile, ...environment });
}

/** Files that secrets are read from end with a line break, which is no part of them. */
const trimmed = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, value?.trim()]));

const pathOf = (file: string | undefined, workingDirectory: string): string =>
  resolve(workingDirectory, file ?? CONFIG_FILE);

/** Paths in a configuration are relative to it; a sitemap may also be a web address. */
function withPaths(settings: Settings, directory: string): Settings {
  const { dataDir, improve, publish } = settings;
  const { sitemap } = improve;
  const isPath = sitemap !== undefined && !URL.canParse(sitemap);
  return {
    ...settings,
    dataDir: resolve(directory, dataDir),
    publish: { ...publish, parquet: publish.parquet && resolve(directory, publish.parquet) },
    improve: isPath ? { ...improve, sitemap: resolve(directory, sitemap) } : improve,
  };
}

/** Throws a `ConfigurationError` if the key is missing or malformed. */
export function apiKeyOf(environment: Environment, project: ProjectSettings): string {
  const key = environment[project.apiKeyEnv];
  if (key === undefined || key === '')
    throw new ConfigurationError(
      `No API key for project ${project.id}: set ${project.apiKeyEnv} in the environment, or in .env next to ${CONFIG_FILE}. ` +
        `Create a key on the API keys page of the dashboard.`,
    );
  if (isTooShort(key)) throw tooShort(project.apiKeyEnv);
  const [foreign] = /[^\x21-\x7e]/u.exec(key) ?? [];
  if (foreign !== undefined)
    throw new ConfigurationError(
      `The value of ${project.apiKeyEnv} is not an API key: character ${key.indexOf(foreign) + 1} is ${nameOf(foreign)}, which keys never contain. Copy the key again.`,
    );
  return key;
}

/** A character that people may not see, in words. */
function nameOf(character: string): string {
  if (character === ' ') return 'a space';
  if (character === '\n' || character === '\r') return 'a line break';
  const code = character.codePointAt(0) ?? 0;
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(character)
    ? `“${character}”`
    : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A shorter secret would be redacted from ordinary words. */
const LEAST_SECRET_LENGTH = 8;
export const isTooShort = (secret: string): boolean => secret !== '' && secret.length < LEAST_SECRET_LENGTH;

export const tooShort = (name: string): ConfigurationError =>
  new ConfigurationError(
    `A secret in ${name} has fewer than ${LEAST_SECRET_LENGTH} characters. Check that it was copied completely, or choose a longer one.`,
  );

/**
 * Names what counts its requests together: a declared organization, or the value of a key, of which
 * only a digest is kept. Without a key nothing is sent.
 */
export function bucketNameOf({ organization, apiKeyEnv }: ProjectSettings, environment: Environment): string {
  if (organization !== undefined) return `organization ${organization}`;
  const key = environment[apiKeyEnv] ?? '';
  if (key === '') return apiKeyEnv;
  return `key ${createHash('sha256').update(`readership ${key}`).digest('hex').slice(0, 16)}`;
}

async function readConfig(path: string, isDefault: boolean): Promise<string> {
  const text = await readText(path);
  if (text !== undefined) return text;
  throw new ConfigurationError(
    isDefault
      ? `There is no ${CONFIG_FILE} in ${dirname(path)}. Either:\n` +
          `  readership init             write one for your own documentation\n` +
          `  readership run --sandbox    try everything on the built-in sandbox; needs no account`
      : `There is no configuration ${path}: correct --config.`,
  );
}

async function readDotEnv(path: string, dotEnv: 'required' | 'optional'): Promise<Environment> {
  // A password manager may offer it as a pipe, and writes to it at once.
  const text = await readText(path, (file) => readFile(file, 'utf8')).catch((error: unknown) => {
    const isDenied = error instanceof Error && codeOf(error.cause) === 'EACCES';
    if (dotEnv === 'required' || !isDenied) throw error;
  });
  return parseEnv((text ?? '').replace(/^\ufeff/, ''));
}
