import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Runtime } from '../app/workspace.js';
import { CONFIG_FILE, DOT_ENV, readEnvironment, SMTP_URL_VARIABLE } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { typedAddress } from '../config/recipients.js';
import { settingsSchema } from '../config/schema.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { inSequence } from '../format/days.js';
import { indented } from '../format/text.js';
import { parseSmtpUrl } from '../mail/smtp-url.js';
import { askLine } from '../terminal/person.js';
import { flag, flagNamed, simpleCommand, value } from './command.js';
import { EXAMPLE, type InitAnswers, KEY, writeFiles } from './init-files.js';
import {
  countRequests,
  findSitemap,
  mailServerWorks,
  platformWorks,
  type SentRequests,
  sitemapOf,
} from './init-trial.js';

export const init = simpleCommand('init', {
  summary: 'write readership.yaml and .env, prompting for the values',
  description: `Writes a ${CONFIG_FILE} of ten lines and a ${DOT_ENV} that only you can read into this directory, and adds ${DOT_ENV} to .gitignore. It never overwrites a file. On a terminal, unless --url and --project are given, it prompts for the platform's address, the project and the API key (not shown); then, if you like, for the site's address, who gets the weekly email, and the mail server. It tries the platform as readership doctor --url does, with requests that change nothing, logs in to the mail server, looks for the site's sitemap, and lets you correct what is refused.`,
  options: {
    url: value('<address>', "the address of the platform's API"),
    project: value('<id>', 'the ID of the project'),
    name: value('<name>', 'the name of the site in reports (default: the host of --site-url, or the ID)'),
    siteUrl: value('<address>', 'the address of the site, so that reports link to its pages'),
    email: value('<address>', 'who gets the weekly email and alerts'),
    saveKey: flag(`store the ${KEY} of the environment in ${DOT_ENV}, and ${SMTP_URL_VARIABLE} if it is set`),
    noCheck: flag('do not try the platform and the mail server, and do not look for a sitemap'),
  },
  examples: `
  mkdir acme-readership && cd acme-readership && readership init
  readership init --url ${EXAMPLE.url} --project ${EXAMPLE.project}`,
  environment: `Environment (or .env in this directory):
  ${KEY}     the admin API key; if set, init does not prompt for it
  ${SMTP_URL_VARIABLE}    the mail server; the same`,
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
    const knownServer = environment[SMTP_URL_VARIABLE] === '' ? undefined : environment[SMTP_URL_VARIABLE];
    if (saveKey === true && knownKey === undefined)
      throw new ConfigurationError(`--save-key: ${KEY} is not set in the environment. Nothing was written.`);

    const sent: SentRequests = new Map();
    const trials = {
      platform: async (answers: InitAnswers) =>
        noCheck === true || platformWorks({ key: knownKey, ...answers }, runtime, sent),
      mailServer: async (answers: InitAnswers) => noCheck === true || mailServerWorks(answers, runtime),
    };
    const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
    const isAsked = isTerminal && (given.url === undefined || given.project === undefined);
    const server = given.email === undefined ? undefined : knownServer;
    if (
      !isAsked &&
      !((await trials.platform(given)) && (await trials.mailServer({ ...given, smtpUrl: server })))
    )
      throw new ConfigurationError('Nothing was written. --no-check writes the files anyway.');
    const known = { key: knownKey, smtpUrl: knownServer };
    const asked = isAsked ? await interview(given, known, runtime, trials) : given;
    const answers: InitAnswers = saveKey === true ? { ...asked, ...known } : asked;
    const sitemap = noCheck === true ? undefined : await findSitemap(answers.siteUrl, runtime);

    signal.throwIfAborted();
    const { written, stored } = await writeFiles(workingDirectory, { ...answers, sitemap });
    await countRequests(sent, runtime);
    const isKeyKnown = knownKey !== undefined || answers.key !== undefined;
    const isServerKnown = knownServer !== undefined || answers.smtpUrl !== undefined;
    const notStored = [isKeyKnown && KEY, isServerKnown && SMTP_URL_VARIABLE].filter(
      (name) => name !== false && !stored.has(name),
    );
    output.data(
      [
        `Wrote ${inSequence(written)}, and added ${DOT_ENV} to .gitignore.`,
        ...indented([
          answers.url === undefined && `- set baseUrl in ${CONFIG_FILE}`,
          answers.project === undefined && `- set the project's ID in ${CONFIG_FILE}`,
          !isKeyKnown && `- add ${KEY} to ${DOT_ENV}`,
          ...notStored.map((name) => `- keep ${name} in the environment, because it is not in ${DOT_ENV}`),
          answers.email !== undefined &&
            !isServerKnown &&
            `- to send emails, set ${SMTP_URL_VARIABLE} in ${DOT_ENV}: until then, they are written to data/outbox/`,
          sitemap !== undefined &&
            `- to flag only the pages of ${sitemap.address}, remove the # before improve.sitemap`,
          sitemap !== undefined &&
            sitemap.variants.length > 0 &&
            `- translations or versions in the sitemap: ${inSequence(sitemap.variants)}. Of a page in several, only the most viewed one gets a job. To change that, set improve.variants`,
          noCheck !== true &&
            answers.siteUrl !== undefined &&
            sitemap === undefined &&
            `- there is no sitemap at ${sitemapOf(answers.siteUrl)}: if it is elsewhere, set improve.sitemap`,
        ]),
        'Next: readership run',
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
function problemIn(answers: InitAnswers): string | undefined {
  const { url = EXAMPLE.url, siteUrl, project, name, email, smtpUrl } = answers;
  if (smtpUrl !== undefined && smtpUrl !== '')
    try {
      parseSmtpUrl(smtpUrl);
    } catch (error) {
      return messageOf(error);
    }
  const wrongEmail = typedAddress.optional().safeParse(email).error;
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
  siteUrl: { words: 'Address of the site, so that reports link to its pages', isOptional: true },
  email: { words: 'Who gets the weekly email and alerts', isOptional: true },
  smtpUrl: {
    words: 'Mail server, such as smtp://USER:PASSWORD@smtp.example.com:587; what you type is not shown',
    isOptional: true,
    isHidden: true,
  },
} satisfies Readonly<Record<string, Question>>;

/**
 * Asks about the platform until it works, or the person writes the files anyway, and then about the site and its emails.
 * What the environment has is not asked for.
 */
async function interview(
  given: InitAnswers,
  known: Pick<InitAnswers, 'key' | 'smtpUrl'>,
  runtime: Runtime,
  trials: Readonly<Record<'platform' | 'mailServer', (answers: InitAnswers) => Promise<boolean>>>,
): Promise<InitAnswers> {
  let { url, project } = given;
  let key: string | undefined;
  for (let isFirst = true; ; isFirst = false) {
    if (url === undefined || !isFirst) url = await ask('url', url, runtime);
    if (project === undefined || !isFirst) project = await ask('project', project, runtime);
    if (known.key === undefined) key = await ask('key', key, runtime);
    if (await trials.platform(key === undefined ? { url, project } : { url, project, key })) break;
    if (await isKept(runtime)) break;
  }
  const siteUrl = given.siteUrl ?? (await ask('siteUrl', undefined, runtime));
  const email = given.email ?? (await ask('email', undefined, runtime));
  let { smtpUrl } = known;
  while (email !== undefined) {
    if (known.smtpUrl === undefined) smtpUrl = await ask('smtpUrl', smtpUrl, runtime);
    if ((await trials.mailServer({ email, smtpUrl })) || (await isKept(runtime))) break;
  }
  return {
    ...given,
    url,
    project,
    key,
    siteUrl,
    email,
    smtpUrl: known.smtpUrl === undefined ? smtpUrl : undefined,
  };
}

/** Whether to keep answers that do not work. Throws if nothing is to be written. */
async function isKept(runtime: Runtime): Promise<boolean> {
  const choice = await askText('Correct the answers? [Y/n, or w to write the files anyway] ', runtime);
  if (/^n/i.test(choice)) throw new ConfigurationError('Nothing was written.');
  return /^w/i.test(choice);
}

/** Asks until the answer is valid. An empty one is the default, or none. */
async function ask(
  name: keyof typeof QUESTIONS,
  usual: string | undefined,
  runtime: Runtime,
): Promise<string | undefined> {
  const { words, isOptional = false, isHidden = false }: Question = QUESTIONS[name];
  const shown = (isHidden ? usual && 'the same' : usual) ?? (isOptional ? 'none' : undefined);
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
