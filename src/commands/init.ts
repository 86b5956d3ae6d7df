import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Runtime } from '../app/workspace.js';
import { CONFIG_FILE, DOT_ENV, readEnvironment, SMTP_URL_VARIABLE } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { address } from '../config/recipients.js';
import { settingsSchema } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { inSequence } from '../format/days.js';
import { indented } from '../format/text.js';
import { askLine } from '../terminal/person.js';
import { flag, flagNamed, simpleCommand, value } from './command.js';
import { EXAMPLE, type InitAnswers, KEY, writeFiles } from './init-files.js';
import { countRequests, findSitemap, platformWorks, type SentRequests } from './init-trial.js';

export const init = simpleCommand('init', {
  summary: 'write readership.yaml and .env, prompting for the values',
  description: `Writes a ${CONFIG_FILE} of ten lines and a ${DOT_ENV} that only you can read into this directory, and adds ${DOT_ENV} to .gitignore. It never overwrites a file. On a terminal, unless --url and --project are given, it prompts for the platform's address, the project, the API key (not shown), the site's name and address, and an email address. With a key, it first tries the platform as readership doctor --url does, with requests that change nothing, and lets you correct what the platform refuses. It also looks for the site's sitemap.`,
  options: {
    url: value('<address>', "the address of the platform's API"),
    project: value('<id>', 'the ID of the project'),
    name: value('<name>', 'the name of the site in reports (default: the ID)'),
    siteUrl: value('<address>', 'the address of the site, so that reports link to its pages'),
    email: value('<address>', 'who gets the weekly email and alerts'),
    saveKey: flag(`store the ${KEY} of the environment in ${DOT_ENV}`),
    noCheck: flag('do not try the platform, and do not look for a sitemap'),
  },
  examples: `
  mkdir acme-readership && cd acme-readership && readership init
  readership init --url ${EXAMPLE.url} --project ${EXAMPLE.project}`,
  environment: `Environment (or .env in this directory):
  ${KEY}     the admin API key; if set, init does not prompt for it`,
  run: async ({ noCheck, saveKey, ...options }, runtime) => {
    const { workingDirectory, output, signal } = runtime;
    if (existsSync(join(workingDirectory, CONFIG_FILE)))
      throw new ConfigurationError(
        `${join(workingDirectory, CONFIG_FILE)} already exists; nothing was written. Move it away first.`,
      );
    for (const [name, text] of Object.entries(options)) {
      const problem = problemIn({ [name]: text });
      if (problem !== undefined) throw new ConfigurationError(`${flagNamed(name)} ${text}: ${problem}`);
    }
    const given = { ...options, url: withScheme(options.url), siteUrl: withScheme(options.siteUrl) };
    const environment = await readEnvironment(undefined, workingDirectory, runtime.environment, output.note);
    const knownKey = environment[KEY] === '' ? undefined : environment[KEY];
    if (saveKey === true && knownKey === undefined)
      throw new ConfigurationError(`--save-key: ${KEY} is not set in the environment. Nothing was written.`);

    const sent: SentRequests = new Map();
    const works = async (answers: InitAnswers) =>
      noCheck === true || platformWorks({ key: knownKey, ...answers }, runtime, sent);
    const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
    const isAsked = isTerminal && (given.url === undefined || given.project === undefined);
    if (!isAsked && !(await works(given)))
      throw new ConfigurationError('Nothing was written. --no-check writes the files anyway.');
    const asked = isAsked ? await interview(given, knownKey !== undefined, runtime, works) : given;
    const answers: InitAnswers = saveKey === true ? { ...asked, key: knownKey } : asked;
    const sitemap = noCheck === true ? undefined : await findSitemap(answers.siteUrl, runtime);

    signal.throwIfAborted();
    const { written, hasKey } = await writeFiles(workingDirectory, { ...answers, sitemap });
    await countRequests(sent, runtime);
    const isKeyKnown = knownKey !== undefined || answers.key !== undefined;
    output.data(
      [
        `Wrote ${inSequence(written)}, and added ${DOT_ENV} to .gitignore.`,
        ...indented([
          answers.url === undefined && `- set baseUrl in ${CONFIG_FILE}`,
          answers.project === undefined && `- set the project's ID in ${CONFIG_FILE}`,
          !isKeyKnown && `- add ${KEY} to ${DOT_ENV}`,
          isKeyKnown && !hasKey && `- keep ${KEY} in the environment, because it is not in ${DOT_ENV}`,
          answers.email !== undefined &&
            `- to send emails, set ${SMTP_URL_VARIABLE} in ${DOT_ENV}: until then, they are written to data/outbox/`,
          sitemap !== undefined &&
            `- to flag only the pages of ${sitemap}, remove the # before improve.sitemap`,
        ]),
        'Next:',
        '  readership run                      loads the history, newest days first, and writes the reports',
        '  readership report weekly --open     shows last week',
        '  readership start                    runs every step on its schedule',
      ].join('\n'),
    );
    return 0;
  },
});

/** An address as people type it: `docs.example.com` becomes `https://docs.example.com`. */
function withScheme(text: string | undefined): string | undefined {
  if (text === undefined || text === '' || /^[a-z][a-z\d+.-]*:\/\//i.test(text)) return text;
  return `${/^(localhost|127\.|\[::1\])/.test(text) ? 'http' : 'https'}://${text}`;
}

/** What is wrong with some answers; undefined if nothing is. */
function problemIn({ url = EXAMPLE.url, siteUrl, project, name, email }: InitAnswers): string | undefined {
  const wrongEmail = address.optional().safeParse(email).error;
  const { error } = settingsSchema.safeParse({
    baseUrl: withScheme(url),
    projects: [{ id: project ?? EXAMPLE.project, name, siteUrl: withScheme(siteUrl) }],
  });
  return wrongEmail || error ? firstProblem(wrongEmail ?? error) : undefined;
}

interface Question {
  readonly words: string;
  readonly isOptional?: boolean;
  readonly isHidden?: boolean;
}

const QUESTIONS = {
  url: { words: "Address of the platform's API, such as https://platform.example.com" },
  project: { words: 'Project ID, from the API keys page of its dashboard' },
  key: {
    words: 'API key, from the same page; what you type is not shown',
    isOptional: true,
    isHidden: true,
  },
  name: { words: 'Name of the site in reports' },
  siteUrl: { words: 'Address of the site, so that reports link to its pages', isOptional: true },
  email: { words: 'Who gets the weekly email and alerts', isOptional: true },
} satisfies Readonly<Record<string, Question>>;

/**
 * Asks about the platform until it works, or the person writes the files anyway, and then about the
 * reports. The key is asked for unless the environment has it.
 */
async function interview(
  given: InitAnswers,
  isKeyKnown: boolean,
  runtime: Runtime,
  works: (answers: InitAnswers) => Promise<boolean>,
): Promise<InitAnswers> {
  let { url, project } = given;
  let key: string | undefined;
  for (let isFirst = true; ; isFirst = false) {
    if (url === undefined || !isFirst) url = await ask('url', url, runtime);
    if (project === undefined || !isFirst) project = await ask('project', project, runtime);
    if (!isKeyKnown) key = await ask('key', key, runtime);
    if (await works(key === undefined ? { url, project } : { url, project, key })) break;
    const choice = await askText('Correct the answers? [Y/n, or w to write the files anyway] ', runtime);
    if (/^n/i.test(choice)) throw new ConfigurationError('Nothing was written.');
    if (/^w/i.test(choice)) break;
  }
  const name = given.name ?? (await ask('name', project, runtime));
  const siteUrl = given.siteUrl ?? (await ask('siteUrl', undefined, runtime));
  const email = given.email ?? (await ask('email', undefined, runtime));
  return { url, project, key, name, siteUrl, email };
}

/** Asks until the answer is valid. An empty one is the default, or none. */
async function ask(
  name: keyof typeof QUESTIONS,
  usual: string | undefined,
  runtime: Runtime,
): Promise<string | undefined> {
  const { words, isOptional = false, isHidden = false }: Question = QUESTIONS[name];
  const shown = isHidden ? usual && 'the same' : (usual ?? (isOptional ? 'none' : undefined));
  for (;;) {
    const text =
      (await askText(`${words}${shown === undefined ? '' : ` [${shown}]`}: `, runtime, { isHidden })) ||
      usual;
    if (text === undefined && isOptional) return undefined;
    const problem = problemIn({ [name]: text ?? '' });
    if (problem === undefined) return name === 'url' || name === 'siteUrl' ? withScheme(text) : text;
    runtime.output.note(problem);
  }
}

async function askText(
  question: string,
  { signal }: Runtime,
  options?: { readonly isHidden: boolean },
): Promise<string> {
  const line = await askLine(question, signal, options);
  if (line === undefined) throw new ConfigurationError('The input ended. Nothing was written.');
  return line.trim();
}
