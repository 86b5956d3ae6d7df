import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { z } from 'zod';
import { ConfigurationError, messageOf } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { counted } from '../format/numbers.js';
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

/** Throws a `ConfigurationError` when the key is missing or malformed. */
export function apiKeyOf({ environment }: Configuration, project: ProjectSettings): string {
  const key = environment[project.apiKeyEnv];
  if (key === undefined || key === '')
    throw new ConfigurationError(
      `No API key for project ${project.id}: set ${project.apiKeyEnv} in the environment, or in .env beside ${CONFIG_FILE}. ` +
        `Create a key on the API keys page of the dashboard.`,
    );
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new ConfigurationError(
      `The value of ${project.apiKeyEnv} contains a space or a character that keys do not have.`,
    );
  return key;
}

async function readConfig(path: string, isDefault: boolean): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError(
      isDefault
        ? `There is no ${CONFIG_FILE} in ${dirname(path)}. Either:\n` +
            `  readership init             write one for your own documentation\n` +
            `  readership run --sandbox    try everything on the embedded sandbox, without an account`
        : `Cannot read ${path}: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function parseSettings(text: string, path: string): Settings {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  if (document.errors.length > 0)
    throw invalid(
      path,
      document.errors.map(({ code, message, pos }) => ({
        line: lines.linePos(pos[0]).line,
        message: code === 'MULTIPLE_DOCS' ? 'a second document begins here; only one is allowed' : message,
      })),
    );
  const stray = strayYaml(document, lines);
  if (stray.length > 0) throw invalid(path, stray);
  const parsed = settingsSchema.safeParse(valuesOf(document, path) ?? {}, { reportInput: true });
  if (!parsed.success) throw invalid(path, problemsOf(parsed.error.issues, document, lines));
  return parsed.data;
}

function valuesOf(document: Document, path: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Nested aliases that would fill the memory.
    throw invalid(path, [{ line: 1, message: `cannot be read: ${messageOf(error)}` }]);
  }
}

function invalid(path: string, problems: readonly Problem[]): ConfigurationError {
  const list = problems.map(({ line, message }) => `  ${basename(path)}:${line}  ${message}`);
  return new ConfigurationError(`${path} has ${counted(problems.length, 'problem')}:\n${list.join('\n')}`);
}

async function readDotEnv(path: string): Promise<Environment> {
  try {
    const text = (await readFile(path, 'utf8').catch(ignoreMissing)) ?? '';
    return parseEnv(text.replace(/^\ufeff/, ''));
  } catch (error) {
    throw new ConfigurationError(`Cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** What is wrong with a configuration file, and where. */
interface Problem {
  readonly line: number;
  readonly message: string;
}

type Issue = z.core.$ZodIssue;

/** The problems of a parsed document, in the order of its lines; a missing key has the line of what lacks it. */
function problemsOf(issues: readonly Issue[], document: Document, lines: LineCounter): Problem[] {
  return issues
    .flatMap(describe)
    .map(({ path, text }) => ({
      line: lineOf(path, document, lines),
      message: path.length === 0 ? text : `${nameOf(path)}: ${text}`,
    }))
    .sort((left, right) => left.line - right.line);
}

/** What YAML misreads: an unquoted pattern that begins with an asterisk, as an alias; and keys that are not text. */
function strayYaml(document: Document, lines: LineCounter): Problem[] {
  const problems: Problem[] = [];
  const add = (offset: number, message: string) => {
    problems.push({ line: lines.linePos(offset).line, message });
  };
  visit(document, {
    Alias: (_, alias) => {
      const { source, range } = alias;
      if (alias.resolve(document) === undefined)
        add(range?.[0] ?? 0, `YAML takes *${source} for an alias; put it in quotes: '*${source}'`);
    },
    Pair: (_, { key, value }) => {
      if (isScalar(key) && typeof key.value === 'string') return;
      const node = isNode(key) ? key : value;
      add((isNode(node) ? node.range?.[0] : 0) ?? 0, `not the name of a setting: ${String(key)}`);
    },
  });
  return problems;
}

function describe(issue: Issue): { path: PropertyKey[]; text: string }[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...issue.path, key],
      text: 'no such setting; `readership init` writes a file with all of them',
    }));
  if (issue.code === 'invalid_type' && issue.input === undefined)
    return [{ path: issue.path, text: 'is missing' }];
  return [{ path: issue.path, text: issue.message }];
}

/** `projects[0].id` */
const nameOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (name, key) =>
      typeof key === 'number' ? `${name}[${key}]` : name === '' ? String(key) : `${name}.${String(key)}`,
    '',
  );

function lineOf(path: readonly PropertyKey[], document: Document, lines: LineCounter): number {
  const offset = keyOffset(path, document) ?? valueOffset(path, document);
  if (offset !== undefined) return lines.linePos(offset).line;
  return path.length === 0 ? 1 : lineOf(path.slice(0, -1), document, lines);
}

function keyOffset(path: readonly PropertyKey[], document: Document): number | undefined {
  const parent = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find((item) => isScalar(item.key) && item.key.value === path.at(-1));
  return isNode(pair?.key) ? pair.key.range?.[0] : undefined;
}

function valueOffset(path: readonly PropertyKey[], document: Document): number | undefined {
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNode(node) ? node.range?.[0] : undefined;
}
