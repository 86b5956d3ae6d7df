import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import { stringify } from 'yaml';
import type { Runtime } from '../app/workspace.js';
import { CONFIG_FILE, DOT_ENV, readEnvironment, SMTP_URL_VARIABLE } from '../config/load.js';
import { ConfigurationError, type ExitCode, messageOf } from '../errors.js';
import { ignoreMissing, packageFile } from '../files.js';
import { inSequence } from '../format/days.js';
import { indented } from '../format/text.js';
import { simpleCommand, flag, flagNamed, value } from './command.js';
import { type Answers, askAll, EXAMPLE, KEY, problemIn, works } from './init-answers.js';

const EXAMPLES = packageFile('templates/workspace/');

/** The schema of the installed version, with which editors complete and check the configuration. */
const SCHEMA = pathToFileURL(join(EXAMPLES, 'readership.schema.json')).href;

export const init = simpleCommand('init', {
  summary: 'write readership.yaml and .env, prompting for the values',
  description: `Writes a commented ${CONFIG_FILE} and .env.example into this directory, never overwrites a file, and adds ${DOT_ENV} to .gitignore. On a terminal, unless --url and --project are given, it prompts for the platform's address, the project, the API key (not shown, and stored in ${DOT_ENV}, which only you can read), the site's name and address, a time zone and an email address. With a key, it first tries the platform as readership doctor --url does, with requests that change nothing, and lets you correct what the platform refuses.`,
  options: {
    url: value('<address>', "the address of the platform's API"),
    project: value('<id>', 'the ID of the project'),
    name: value('<name>', 'the name of the site in reports (default: the ID)'),
    siteUrl: value('<address>', 'the address of the site, so that reports link to its pages'),
    timezone: value('<name>', 'the time zone of reports, such as Europe/Zurich'),
    email: value('<address>', 'who gets the weekly report and alerts'),
    noCheck: flag('do not try the platform'),
  },
  examples: `
  mkdir acme-readership && cd acme-readership && readership init
  readership init --url ${EXAMPLE.url} --project ${EXAMPLE.project}`,
  environment: `Environment (or .env in this directory):
  ${KEY}     the admin API key; if set, init does not prompt for it`,
  run: ({ noCheck, ...given }, runtime) => writeFiles(given, noCheck !== true, runtime),
});

async function writeFiles(given: Answers, check: boolean, runtime: Runtime): Promise<ExitCode> {
  const { workingDirectory, output, signal } = runtime;
  const pathOf = (name: string) => join(workingDirectory, name);
  for (const name of [CONFIG_FILE, '.env.example']) refuseIfThere(pathOf(name));
  for (const [name, text] of Object.entries(given)) {
    const wrong = problemIn({ [name]: text });
    if (wrong !== undefined) throw new ConfigurationError(`${flagNamed(name)} ${text}: ${wrong}`);
  }
  const environment = await readEnvironment(undefined, workingDirectory, runtime.environment, output.note);
  const isKnown = (environment[KEY] ?? '') !== '';
  const asks =
    process.stdin.isTTY && process.stderr.isTTY && (given.url === undefined || given.project === undefined);
  if (asks && !isKnown) refuseIfThere(pathOf(DOT_ENV), ` without ${KEY}`);
  if (!asks && check && !(await works(given, environment, runtime)))
    throw new ConfigurationError('Nothing was written. --no-check writes the files anyway.');
  const answers = asks ? await askAll(given, environment, check, runtime) : given;

  const { key } = answers;
  const secrets = await readFile(join(EXAMPLES, 'env.example'), 'utf8');
  const files: Record<string, string> = {
    [CONFIG_FILE]: filled(await readFile(join(EXAMPLES, CONFIG_FILE), 'utf8'), answers),
    '.env.example': secrets,
    ...(key !== undefined && { [DOT_ENV]: withKey(secrets, key) }),
  };
  signal.throwIfAborted();
  await writeAll(workingDirectory, files);
  await ignoreSecrets(pathOf('.gitignore'));
  const missing = missingAnswers(answers, isKnown, existsSync(pathOf(DOT_ENV)));
  output.data(
    [
      `Wrote ${inSequence(Object.keys(files))}, and added ${DOT_ENV} to .gitignore.`,
      ...missing,
      `Next: readership run   (loads the history, newest days first, and writes the first report)`,
    ].join('\n'),
  );
  return 0;
}

/** What to do before the next command can work, or email can be sent. */
function missingAnswers({ url, project, key, email }: Answers, isKnown: boolean, hasFile: boolean): string[] {
  const hasKey = isKnown || key !== undefined;
  return indented([
    url === undefined && `- set baseUrl in ${CONFIG_FILE}`,
    project === undefined && `- set the project's ID in ${CONFIG_FILE}`,
    !hasKey && hasFile && `- add ${KEY} to ${DOT_ENV}`,
    !hasKey && !hasFile && `- copy .env.example to ${DOT_ENV} and add your API key to it`,
    hasKey && !hasFile && `- keep ${KEY} in the environment, because it is not stored`,
    email !== undefined &&
      `- to send emails, set ${SMTP_URL_VARIABLE} in ${DOT_ENV}: until then, they are written to data/outbox/`,
  ]);
}

/** Keeps the key out of Git. */
async function ignoreSecrets(path: string): Promise<void> {
  const text = (await readFile(path, 'utf8').catch(ignoreMissing)) ?? '';
  if (/^\/?\.env\s*$/m.test(text)) return;
  await writeFile(path, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${DOT_ENV}\n`);
}

function refuseIfThere(path: string, how = ''): void {
  if (existsSync(path))
    throw new ConfigurationError(`${path} already exists${how}; nothing was written. Move it away first.`);
}

/** The example with the answers in it. */
function filled(example: string, answers: Answers): string {
  const { url, project, name, siteUrl, timezone, email } = answers;
  const flow = (value: unknown) => stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();
  const changes: [before: string, after: string | undefined][] = [
    ['$SCHEMA', SCHEMA],
    [`baseUrl: ${EXAMPLE.url}`, url && `baseUrl: ${flow(url)}`],
    [`- id: ${EXAMPLE.project}`, project && `- id: ${flow(project)}`],
    ['# name: Acme Docs  ', name && name !== project ? `name: ${flow(name)} ` : undefined],
    ['# siteUrl: https://docs.example.com  ', siteUrl && `siteUrl: ${flow(siteUrl)} `],
    ['timezone: UTC # for the end', timezone && `timezone: ${flow(timezone)} # for the end`],
    ['weekly:\n    to: []', email && `weekly:\n    to: ${flow([email])}`],
    ['alerts:\n  to: []', email && `alerts:\n  to: ${flow([email])}`],
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

/** All or nothing. A copy of `.env.example` will hold the key, so only its owner may read it. */
async function writeAll(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  const written: string[] = [];
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name);
    try {
      await writeFile(path, text, { flag: 'wx', mode: name === CONFIG_FILE ? 0o666 : 0o600 });
      written.push(path);
    } catch (cause) {
      for (const one of written) await rm(one, { force: true });
      throw new ConfigurationError(
        `Cannot write ${path}: ${messageOf(cause)}. Nothing was written. Use a directory you can write to.`,
        { cause },
      );
    }
  }
}
