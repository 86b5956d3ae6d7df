import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import { stringify } from 'yaml';
import type { Runtime } from '../app/workspace.js';
import {
  CONFIG_FILE,
  DOT_ENV,
  type Environment,
  readEnvironment,
  SMTP_URL_VARIABLE,
} from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { settingsSchema } from '../config/schema.js';
import { codeOf, ConfigurationError, type ExitCode, messageOf } from '../errors.js';
import { packageFile } from '../files.js';
import { inSequence } from '../format/days.js';
import { findingLines } from '../print/status.js';
import { tryPlatform } from '../service/platform.js';
import { askLine } from '../terminal/person.js';
import { defineCommand, flag, value } from './command.js';

const EXAMPLES = packageFile('templates/workspace/');

/** The schema of the installed version, with which editors complete and check the configuration. */
const SCHEMA = pathToFileURL(join(EXAMPLES, 'readership.schema.json')).href;

/** Answers about the platform and the reports. */
interface Answers {
  readonly url?: string;
  readonly project?: string;
  readonly timezone?: string;
  readonly email?: string;
}

const KEY = 'READERSHIP_API_KEY';
const EXAMPLE = { url: 'https://platform.example.com', project: 'prj_123' };

export const init = defineCommand({
  name: 'init',
  summary: 'write readership.yaml and .env, prompting for the values',
  description: `Writes a commented ${CONFIG_FILE} and .env.example into this directory, and never overwrites a file. On a terminal, unless --url and --project are given, it prompts for the platform's address, the project, the API key (not shown, and stored in ${DOT_ENV}, which only you can read), a time zone and an email address. With a key, it first tries the platform as readership doctor --url does, with three requests that change nothing.`,
  options: {
    url: value('<address>', "the address of the platform's API"),
    project: value('<id>', 'the id of the project'),
    timezone: value('<name>', 'the time zone of reports, such as Europe/Zurich'),
    email: value('<address>', 'who gets the weekly report and alerts'),
    noCheck: flag('do not try the platform'),
  },
  examples: `
  mkdir acme-readership && cd acme-readership && readership init
  readership init --url ${EXAMPLE.url} --project ${EXAMPLE.project}   without questions`,
  environment: `Environment (or .env in this directory):
  ${KEY}     the admin API key; if set, init does not prompt for it`,
  run: ({ noCheck, ...given }, runtime) => writeFiles(given, noCheck !== true, runtime),
});

async function writeFiles(given: Answers, check: boolean, runtime: Runtime): Promise<ExitCode> {
  const { workingDirectory, output, signal } = runtime;
  const pathOf = (name: string) => join(workingDirectory, name);
  for (const name of [CONFIG_FILE, '.env.example']) refuseIfThere(pathOf(name));
  const wrong = problemIn(given);
  if (wrong !== undefined) throw new ConfigurationError(wrong);
  const environment = await readEnvironment(undefined, workingDirectory, runtime.environment);
  const known = environment[KEY] ?? '';
  const asks =
    process.stdin.isTTY && process.stderr.isTTY && (given.url === undefined || given.project === undefined);
  if (asks && known === '') refuseIfThere(pathOf(DOT_ENV), ` without ${KEY}`);

  const platform = asks ? await askFor(['url', 'project'], given, runtime) : given;
  const typed = asks && known === '' ? await asked(`${KEY}, which is not shown: `, runtime, true) : '';
  const key = known === '' ? typed : known;
  if (check && key !== '') await tryFirst(platform, { ...environment, [KEY]: key }, asks, runtime);
  const answers = asks ? await askFor(['timezone', 'email'], platform, runtime) : platform;

  const settings = filled(await readFile(join(EXAMPLES, CONFIG_FILE), 'utf8'), answers);
  const secrets = await readFile(join(EXAMPLES, 'env.example'), 'utf8');
  const files = [
    { name: CONFIG_FILE, text: settings, mode: 0o666 },
    // A copy of it will hold the key, so only its owner may read it.
    { name: '.env.example', text: secrets, mode: 0o600 },
    ...(typed === '' ? [] : [{ name: DOT_ENV, text: withKey(secrets, typed), mode: 0o600 }]),
  ];
  signal.throwIfAborted();
  await writeAll(workingDirectory, files);
  const names = inSequence(files.map(({ name }) => name));
  const steps = nextSteps(answers, key !== '', existsSync(pathOf(DOT_ENV)));
  output.data([`Wrote ${names}. Next:`, ...steps.map((step, index) => `  ${index + 1}. ${step}`)].join('\n'));
  return 0;
}

/**
 * Tries the platform, if it is known. If that fails, throws a `ConfigurationError`, or asks what to
 * do.
 */
async function tryFirst(
  { url, project }: Answers,
  environment: Environment,
  asks: boolean,
  runtime: Runtime,
): Promise<void> {
  if (url === undefined || project === undefined) return;
  const findings = await tryPlatform(url, project, environment, runtime);
  runtime.output.words(findingLines(findings, runtime.output.colors));
  if (!findings.some(({ verdict }) => verdict === 'fail')) return;
  const anyway = asks ? await asked('Write the files anyway? [y/N] ', runtime) : 'no';
  if (!/^y/i.test(anyway))
    throw new ConfigurationError('Nothing was written. --no-check writes the files anyway.');
}

function nextSteps({ url, project, email }: Answers, hasKey: boolean, hasFile: boolean): string[] {
  const keyStep = hasKey
    ? !hasFile &&
      `${KEY} is not stored: keep it in the environment, or copy .env.example to ${DOT_ENV} and add it.`
    : hasFile
      ? `Add ${KEY} to ${DOT_ENV}.`
      : `Copy .env.example to ${DOT_ENV}, and add your API key.`;
  return [
    (url === undefined || project === undefined) && `Set baseUrl and the project's id in ${CONFIG_FILE}.`,
    keyStep,
    email !== undefined &&
      `Set ${SMTP_URL_VARIABLE} as well; until then, emails are only written to data/outbox/.`,
    'readership export --plan   (shows what it will request; sends nothing)',
    'readership run             (loads the history, and writes the first report)',
  ].filter((step) => step !== false);
}

function refuseIfThere(path: string, how = ''): void {
  if (existsSync(path))
    throw new ConfigurationError(`${path} already exists${how}; nothing was written. Move it away first.`);
}

/** What is wrong with some answers; undefined if nothing is. */
function problemIn({
  url = EXAMPLE.url,
  project = EXAMPLE.project,
  timezone,
  email,
}: Answers): string | undefined {
  const { error } = settingsSchema.safeParse({
    ...{ baseUrl: url, projects: [{ id: project }], reports: { timezone } },
    ...(email !== undefined && { alerts: { to: [email] }, mail: { from: `Readership <${email}>` } }),
  });
  return error && firstProblem(error);
}

const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const QUESTIONS = {
  url: "Address of the platform's API, such as https://platform.example.com: ",
  project: 'Project id, from the API keys page of its dashboard: ',
  timezone: `Time zone of the reports [${HERE}]: `,
  email: 'Email address for the weekly report and alerts [none]: ',
};
const DEFAULTS: Answers = { timezone: HERE };
const OPTIONAL: readonly string[] = ['email'];

/** Asks for what is not known yet, until each answer is valid. */
async function askFor(keys: readonly (keyof Answers)[], known: Answers, runtime: Runtime): Promise<Answers> {
  let answers = known;
  for (const key of keys)
    while (answers[key] === undefined) {
      const answer = (await asked(QUESTIONS[key], runtime)) || DEFAULTS[key];
      if (answer === undefined && OPTIONAL.includes(key)) break;
      const next = { ...answers, [key]: answer ?? '' };
      const problem = problemIn(next);
      if (problem === undefined) answers = next;
      else runtime.output.note(problem);
    }
  return answers;
}

async function asked(question: string, { signal }: Runtime, isHidden = false): Promise<string> {
  const line = await askLine(question, signal, { isHidden });
  if (line === undefined) throw new ConfigurationError('The input ended. Nothing was written.');
  return line.trim();
}

/** The example with the answers in it. */
function filled(example: string, { url, project, timezone, email }: Answers): string {
  const flow = (value: unknown) => stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();
  const changes: [before: string, after: string | undefined][] = [
    ['$SCHEMA', SCHEMA],
    [`baseUrl: ${EXAMPLE.url}`, url && `baseUrl: ${flow(url)}`],
    [`- id: ${EXAMPLE.project}`, project && `- id: ${flow(project)}`],
    ['timezone: UTC # for the end', timezone && `timezone: ${flow(timezone)} # for the end`],
    ['weekly:\n    to: []', email && `weekly:\n    to: ${flow([email])}`],
    ['alerts:\n  to: []', email && `alerts:\n  to: ${flow([email])}`],
    [
      '# mail:\n#   from: Readership <docs@example.com>',
      email && `mail:\n  from: ${flow(`Readership <${email}>`)}`,
    ],
  ];
  return changes.reduce((text, [before, after]) => text.replace(before, () => after ?? before), example);
}

/** The example with the key, quoted where `.env` would read it as something else. */
function withKey(example: string, key: string): string {
  const lines = ['', "'", '"', '`'].map((quote) => `${KEY}=${quote}${key}${quote}`);
  const line = lines.find((line) => parseEnv(line)[KEY] === key);
  if (line === undefined)
    throw new ConfigurationError(
      `No .env file can hold this key. Set ${KEY} in the environment, and run init again.`,
    );
  return example.replace(`${KEY}=`, () => line);
}

/** All or nothing. */
async function writeAll(
  directory: string,
  files: readonly { readonly name: string; readonly text: string; readonly mode: number }[],
): Promise<void> {
  const written: string[] = [];
  for (const { name, text, mode } of files) {
    const path = join(directory, name);
    try {
      await writeFile(path, text, { flag: 'wx', mode });
      written.push(path);
    } catch (cause) {
      // A file that already existed belongs to somebody else.
      if (codeOf(cause) !== 'EEXIST') written.push(path);
      for (const one of written) await rm(one, { force: true });
      throw new ConfigurationError(`Cannot write ${path}: ${messageOf(cause)}. Nothing was written.`, {
        cause,
      });
    }
  }
}
