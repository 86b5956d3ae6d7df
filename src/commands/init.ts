import { existsSync } from 'node:fs';
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import { stringify } from 'yaml';
import { openOrCreateState } from '../app/open.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { CONFIG_FILE, DOT_ENV, readEnvironment, SMTP_URL_VARIABLE } from '../config/load.js';
import { ConfigurationError, type ExitCode, messageOf } from '../errors.js';
import { ignoreMissing, packageFile } from '../files.js';
import { inSequence } from '../format/days.js';
import { indented } from '../format/text.js';
import { requestsOf } from '../state/requests.js';
import { flag, flagNamed, simpleCommand, value } from './command.js';
import {
  askAll,
  EXAMPLE,
  findSitemap,
  type InitAnswers,
  KEY,
  problemIn,
  type TrialRequests,
  withScheme,
  works,
} from './init-answers.js';

export const init = simpleCommand('init', {
  summary: 'write readership.yaml and .env, prompting for the values',
  description: `Writes a ${CONFIG_FILE} of ten lines and a ${DOT_ENV} that only you can read into this directory, and adds ${DOT_ENV} to .gitignore. It never overwrites a file. On a terminal, unless --url and --project are given, it prompts for the platform's address, the project, the API key (not shown), the site's name and address, and an email address. With a key, it first tries the platform as readership doctor --url does, with requests that change nothing, and lets you correct what the platform refuses. It also looks for the site's sitemap.`,
  options: {
    url: value('<address>', "the address of the platform's API"),
    project: value('<id>', 'the ID of the project'),
    name: value('<name>', 'the name of the site in reports (default: the ID)'),
    siteUrl: value('<address>', 'the address of the site, so that reports link to its pages'),
    email: value('<address>', 'who gets the weekly email and alerts'),
    from: value('<address>', 'the sender of the emails (default: the same address)'),
    saveKey: flag(`store the ${KEY} of the environment in ${DOT_ENV}`),
    noCheck: flag('do not try the platform, and do not look for a sitemap'),
  },
  examples: `
  mkdir acme-readership && cd acme-readership && readership init
  readership init --url ${EXAMPLE.url} --project ${EXAMPLE.project}`,
  environment: `Environment (or .env in this directory):
  ${KEY}     the admin API key; if set, init does not prompt for it`,
  run: ({ noCheck, saveKey, ...given }, runtime) =>
    writeFiles(given, { check: noCheck !== true, saveKey: saveKey === true }, runtime),
});

async function writeFiles(
  given: InitAnswers,
  { check, saveKey }: { check: boolean; saveKey: boolean },
  runtime: Runtime,
): Promise<ExitCode> {
  const { workingDirectory, output, signal } = runtime;
  const pathOf = (name: string) => join(workingDirectory, name);
  if (existsSync(pathOf(CONFIG_FILE)))
    throw new ConfigurationError(
      `${pathOf(CONFIG_FILE)} already exists; nothing was written. Move it away first.`,
    );
  for (const [name, text] of Object.entries(given)) {
    const wrong = problemIn({ [name]: withScheme(name, text) });
    if (wrong !== undefined) throw new ConfigurationError(`${flagNamed(name)} ${text}: ${wrong}`);
  }
  const environment = await readEnvironment(undefined, workingDirectory, runtime.environment, output.note);
  const knownKey = environment[KEY] === '' ? undefined : environment[KEY];
  if (saveKey && knownKey === undefined)
    throw new ConfigurationError(`--save-key: ${KEY} is not set in the environment. Nothing was written.`);
  const asks =
    process.stdin.isTTY && process.stderr.isTTY && (given.url === undefined || given.project === undefined);
  const complete: InitAnswers = {
    ...given,
    url: withScheme('url', given.url),
    siteUrl: withScheme('siteUrl', given.siteUrl),
    from: given.from ?? given.email,
    ...(saveKey && { key: knownKey }),
  };
  const tried: TrialRequests = new Map();
  if (!asks && check && !(await works(complete, environment, runtime, tried)))
    throw new ConfigurationError('Nothing was written. --no-check writes the files anyway.');
  const answers = asks ? await askAll(complete, environment, runtime, { check, tried }) : complete;
  const sitemap = asks || !check ? undefined : await findSitemap(answers.siteUrl, runtime);

  signal.throwIfAborted();
  const written = await writeAll(workingDirectory, answers);
  await ignoreSecrets(pathOf('.gitignore'));
  await countRequests(tried, runtime);
  const isKeyKnown = knownKey !== undefined || answers.key !== undefined;
  const isKeyStored = parseEnv(await readFile(pathOf(DOT_ENV), 'utf8'))[KEY] !== '';
  output.data(
    [
      `Wrote ${inSequence(written)}, and added ${DOT_ENV} to .gitignore.`,
      ...indented([
        answers.url === undefined && `- set baseUrl in ${CONFIG_FILE}`,
        answers.project === undefined && `- set the project's ID in ${CONFIG_FILE}`,
        !isKeyKnown && `- add ${KEY} to ${DOT_ENV}`,
        isKeyKnown && !isKeyStored && `- keep ${KEY} in the environment, because it is not in ${DOT_ENV}`,
        answers.email !== undefined &&
          `- to send emails, set ${SMTP_URL_VARIABLE} in ${DOT_ENV}: until then, they are written to data/outbox/`,
        sitemap !== undefined && `- to flag only the pages of ${sitemap}, set it as improve.sitemap`,
      ]),
      'Next:',
      '  readership run                      loads the history, newest days first, and writes the reports',
      '  readership report weekly --open     shows last week',
      '  readership start                    runs every step on its schedule',
    ].join('\n'),
  );
  return 0;
}

/** The platform may count what tried it, so the first export does too. */
async function countRequests(tried: TrialRequests, runtime: Runtime): Promise<void> {
  if (tried.size === 0) return;
  try {
    const { state } = await openOrCreateState(await readWorkspace({}, runtime));
    try {
      for (const [bucket, sent] of tried)
        await requestsOf(state, bucket).count({ sent, refused: 0 }, runtime.now());
    } finally {
      state.close();
    }
  } catch (error) {
    // The files are written, and the next command says the same if it matters.
    runtime.output.note(messageOf(error));
  }
}

/** Keeps the key out of Git. */
async function ignoreSecrets(path: string): Promise<void> {
  const text = (await readFile(path, 'utf8').catch(ignoreMissing)) ?? '';
  if (/^\/?\.env\s*$/m.test(text)) return;
  await writeFile(path, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${DOT_ENV}\n`);
}

/** Writes both files or none, and adds the key to a `.env` that is there already. Returns what was written. */
async function writeAll(directory: string, answers: InitAnswers): Promise<string[]> {
  const secrets = join(directory, DOT_ENV);
  const configuration = join(directory, CONFIG_FILE);
  const { key } = answers;
  const known = await readFile(secrets, 'utf8').catch(ignoreMissing);
  const addition = key === undefined ? '' : `${known?.endsWith('\n') === false ? '\n' : ''}${keyLine(key)}\n`;
  let path = configuration;
  try {
    await writeFile(configuration, configurationText(answers), { flag: 'wx' });
    path = secrets;
    if (known === undefined) await writeFile(secrets, secretsText(key), { flag: 'wx', mode: 0o600 });
    else if (addition !== '' && parseEnv(known)[KEY] !== key) await appendFile(secrets, addition);
    else return [CONFIG_FILE];
    return [CONFIG_FILE, DOT_ENV];
  } catch (cause) {
    if (path === secrets) await rm(configuration, { force: true });
    throw new ConfigurationError(
      `Cannot write ${path}: ${messageOf(cause)}. Nothing was written. Use a directory you can write to.`,
      { cause },
    );
  }
}

/** The schema of the installed version, with which editors complete and check the configuration. */
const SCHEMA = pathToFileURL(packageFile('templates/workspace/readership.schema.json')).href;
const SETTINGS = packageFile('docs/configuration.md');

const flow = (value: unknown): string =>
  stringify(value, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true }).trim();

/** A configuration of ten lines. What was not answered is there as a comment, to be filled in. */
function configurationText(answers: InitAnswers): string {
  const { url = EXAMPLE.url, project = EXAMPLE.project, name, siteUrl, email, from, sitemap } = answers;
  const site = { id: project, name: name ?? project, ...(siteUrl !== undefined && { siteUrl }) };
  const reader = email ?? 'docs@example.com';
  const unlessAnswered = (answer: string | undefined) => (answer === undefined ? '# ' : '');
  return `# yaml-language-server: $schema=${SCHEMA}
# All settings: ${SETTINGS}
baseUrl: ${flow(url)} # the platform's API
projects:
  - ${flow(site)}
${unlessAnswered(email)}reports: { weekly: { to: [${flow(reader)}] } } # who gets the weekly email
${unlessAnswered(email)}alerts: { to: [${flow(reader)}] } # who is told when something fails
${unlessAnswered(from)}mail: { from: ${flow(senderOf(from ?? reader))} } # the sender
improve:
  mode: plan # flags pages for agents; apply lets run create the jobs
${sitemap === undefined ? '' : `  sitemap: ${flow(sitemap)} # only pages that it lists get a job\n`}`;
}

const senderOf = (text: string): string => (text.includes('<') ? text : `Readership <${text}>`);

/** A new `.env`. */
const secretsText = (key: string | undefined): string => `# Keep this file out of version control.
# An API key from the API keys page of the platform's dashboard.
${key === undefined ? `${KEY}=` : keyLine(key)}
# The mail server. Until it is set, emails are written to data/outbox/. Encode @ : / % in the password as %40 %3A %2F %25.
# ${SMTP_URL_VARIABLE}=smtp://USER:PASSWORD@smtp.example.com:587
`;

/** The key's line of `.env`, quoted where it would be read as something else. */
function keyLine(key: string): string {
  const lines = ['', "'", '"', '`'].map((quote) => `${KEY}=${quote}${key}${quote}`);
  const line = lines.find((line) => parseEnv(line)[KEY] === key);
  if (line === undefined)
    throw new ConfigurationError(
      `No .env file can hold this key. Set ${KEY} in the environment, and run init again.`,
    );
  return line;
}
