import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openOrCreateState } from '../app/open.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import {
  CONFIG_FILE,
  DOT_ENV,
  isTooShort,
  readEnvironment,
  SMTP_URL_VARIABLE,
  tooShort,
} from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { typedAddress } from '../config/recipients.js';
import { settingsSchema } from '../config/schema.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { inSequence } from '../format/days.js';
import { indented } from '../format/text.js';
import { parseSmtpUrl } from '../mail/smtp-server.js';
import { tryMailServer } from '../mail/transport.js';
import { findingLines } from '../print/status.js';
import { type CheckResult, found, pass } from '../service/findings.js';
import { tryPlatform } from '../service/try-platform.js';
import { requestsOf } from '../state/platform.js';
import { askLine } from '../terminal/person.js';
import { flag, flagNamed, simpleCommand, value } from './command.js';
import { EXAMPLE, type InitAnswers, KEY, writeFiles } from './init-files.js';
import { findSitemap, sitemapOf } from './init-sitemap.js';

export const init = simpleCommand('init', {
  summary: 'write readership.yaml and .env, prompting for the values',
  description: `Writes a ${CONFIG_FILE} of ten lines and a ${DOT_ENV} that only you can read into this directory, and adds ${DOT_ENV} to .gitignore. It never overwrites a file. On a terminal, unless --url and --project are given, it prompts for the platform's address, the project and the API key (not shown); then, if you like, for the site's address, who gets the weekly email, and the mail server. It tries the platform as readership doctor --url does, with requests that change nothing, logs in to the mail server, asks again for what is refused, and looks for the site's sitemap.`,
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
  run: async ({ noCheck = false, saveKey = false, ...options }, runtime) => {
    const { workingDirectory, output, signal } = runtime;
    const file = join(workingDirectory, CONFIG_FILE);
    if (existsSync(file))
      throw new ConfigurationError(`${file} already exists; nothing was written. Move it away first.`);
    for (const [name, text] of Object.entries(options)) {
      const problem = problemIn({ [name]: text });
      if (problem !== undefined) throw new ConfigurationError(`${flagNamed(name)} ${text}: ${problem}`);
    }
    const environment = await readEnvironment(undefined, workingDirectory, runtime.environment, output.note);
    const known = {
      key: environment[KEY] === '' ? undefined : environment[KEY],
      smtpUrl: environment[SMTP_URL_VARIABLE] === '' ? undefined : environment[SMTP_URL_VARIABLE],
    };
    if (saveKey && known.key === undefined)
      throw new ConfigurationError(`--save-key: ${KEY} is not set in the environment. Nothing was written.`);

    const unusable = known.smtpUrl === undefined ? undefined : problemIn({ smtpUrl: known.smtpUrl });
    if (unusable !== undefined) throw new ConfigurationError(`${unusable} Nothing was written.`);

    const sent = new Map<string, number>();
    const trials: Trials = noCheck
      ? { platform: () => Promise.resolve(true), mailServer: () => Promise.resolve(true) }
      : {
          platform: (answers) => platformWorks(answers, runtime, sent),
          mailServer: (answers) => mailServerWorks(answers, runtime),
        };
    const given = {
      ...options,
      ...known,
      url: withScheme(options.url),
      siteUrl: withScheme(options.siteUrl),
    };
    const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
    const isAsked = isTerminal && (given.url === undefined || given.project === undefined);
    const answers = isAsked ? await interview(given, trials, runtime) : given;
    if (!isAsked && !((await trials.platform(given)) && (await trials.mailServer(given))))
      throw new ConfigurationError(NOTHING_WRITTEN);

    signal.throwIfAborted();
    const secrets = {
      [KEY]: saveKey || known.key === undefined ? answers.key : undefined,
      [SMTP_URL_VARIABLE]: saveKey || known.smtpUrl === undefined ? answers.smtpUrl : undefined,
    };
    const { siteUrl } = answers;
    const isSought = !noCheck && siteUrl !== undefined;
    const sitemap = isSought ? await findSitemap(siteUrl, runtime) : undefined;
    const { written, stored } = await writeFiles(workingDirectory, { ...answers, sitemap }, secrets);
    output.data(
      [
        `Wrote ${inSequence(written)}, and added ${DOT_ENV} to .gitignore.`,
        ...indented([
          answers.url === undefined && `- set baseUrl in ${CONFIG_FILE}`,
          answers.project === undefined && `- set the project's ID in ${CONFIG_FILE}`,
          answers.key === undefined && `- add ${KEY} to ${DOT_ENV}`,
          ...Object.entries({ [KEY]: answers.key, [SMTP_URL_VARIABLE]: answers.smtpUrl }).map(
            ([name, value]) =>
              value !== undefined &&
              !stored.has(name) &&
              `- keep ${name} in the environment, because it is not in ${DOT_ENV}`,
          ),
          answers.email !== undefined &&
            answers.smtpUrl === undefined &&
            `- to send emails, set ${SMTP_URL_VARIABLE} in ${DOT_ENV}: until then, they are written to data/outbox/`,
          sitemap !== undefined &&
            `- to flag only the pages of ${sitemap.address}, remove the # before improve.sitemap`,
          sitemap !== undefined &&
            sitemap.variants.length > 0 &&
            `- translations or versions in the sitemap: ${inSequence(sitemap.variants)}. Of a page in several, only the most viewed one gets a job. To change that, set improve.variants`,
          isSought &&
            sitemap === undefined &&
            `- no sitemap was found at ${sitemapOf(siteUrl)}: if there is one elsewhere, set improve.sitemap`,
        ]),
        'Next: readership run',
      ].join('\n'),
    );
    if (sent.size > 0) await countRequests(sent, runtime);
    return 0;
  },
});

const NOTHING_WRITTEN = 'Nothing was written. --no-check writes the files anyway.';

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
      const { login } = parseSmtpUrl(smtpUrl);
      // Every command would refuse it.
      if (isTooShort(login?.password ?? '')) return tooShort(SMTP_URL_VARIABLE).message;
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

/** Whether what is answered works, with a line about each check. True if too little is known to try it. */
type Trials = Readonly<Record<'platform' | 'mailServer', (answers: InitAnswers) => Promise<boolean>>>;

async function platformWorks(
  { url, project, key }: InitAnswers,
  runtime: Runtime,
  sent: Map<string, number>,
): Promise<boolean> {
  if (url === undefined || project === undefined || key === undefined) return true;
  const onViews = (bucket: string) => void sent.set(bucket, 1 + (sent.get(bucket) ?? 0));
  const trying = tryPlatform(url, project, { [KEY]: key }, runtime, onViews);
  return areFine(
    await trying.catch((error: unknown) => {
      if (!(error instanceof ConfigurationError)) throw error;
      return [{ check: 'key', verdict: 'fail', words: error.message }];
    }),
    runtime,
  );
}

async function mailServerWorks({ email, smtpUrl }: InitAnswers, runtime: Runtime): Promise<boolean> {
  if (email === undefined || smtpUrl === undefined) return true;
  const login = () => tryMailServer(smtpUrl, email.split('@').at(-1), runtime.signal).then(pass);
  return areFine([await found('mail server', login)], runtime);
}

function areFine(findings: readonly CheckResult[], { output }: Runtime): boolean {
  output.words(findingLines(findings, output.colors));
  return !findings.some(({ verdict }) => verdict === 'fail');
}

/** Counts the requests in the new workspace: the platform may count them too. */
async function countRequests(sent: ReadonlyMap<string, number>, runtime: Runtime): Promise<void> {
  const { state } = await openOrCreateState(await readWorkspace({}, runtime));
  try {
    for (const [bucket, count] of sent)
      await requestsOf(state, bucket).count({ sent: count, refused: 0 }, runtime.now());
  } finally {
    state.close();
  }
}

const QUESTIONS = {
  url: "Address of the platform's API, such as https://platform.example.com",
  project: 'Project ID, from the API keys page of its dashboard',
  key: 'API key, from the same page; what you type is not shown',
  siteUrl: 'Address of the site, so that reports link to its pages',
  email: 'Who gets the weekly email and alerts',
  smtpUrl: 'Mail server, such as smtp://USER:PASSWORD@smtp.example.com:587; what you type is not shown',
};
type QuestionName = keyof typeof QUESTIONS;

const isSecret = (name: QuestionName): boolean => name === 'key' || name === 'smtpUrl';

/** Asks for what is not given: first about the platform until it works, and then about the site and its emails. */
async function interview(given: InitAnswers, trials: Trials, runtime: Runtime): Promise<InitAnswers> {
  const answers = { ...given };
  const askAll = async (names: readonly QuestionName[], works: Trials[keyof Trials]): Promise<void> => {
    // What the environment has cannot be corrected here.
    const asked = names.filter((name) => given[name] === undefined || !isSecret(name));
    for (const name of asked) answers[name] ??= await ask(name, undefined, runtime);
    while (!(await works(answers))) {
      if (asked.length === 0) throw new ConfigurationError(NOTHING_WRITTEN);
      runtime.output.note('Correct the answers, or press Ctrl-C, which writes nothing.');
      for (const name of asked) answers[name] = await ask(name, answers[name], runtime);
    }
  };
  await askAll(['url', 'project', 'key'], trials.platform);
  await askAll(['siteUrl', 'email'], () => Promise.resolve(true));
  if (answers.email !== undefined) await askAll(['smtpUrl'], trials.mailServer);
  return answers;
}

/** Asks until the answer is valid. An empty one is the default, or none. */
async function ask(
  name: QuestionName,
  usual: string | undefined,
  { output, signal }: Runtime,
): Promise<string | undefined> {
  const isHidden = isSecret(name);
  const isOptional = name !== 'url' && name !== 'project';
  const shown = (isHidden ? usual && 'the same' : usual) ?? (isOptional ? 'none' : undefined);
  for (;;) {
    const question = `${QUESTIONS[name]}${shown === undefined ? '' : ` [${shown}]`}: `;
    const line = await askLine(question, signal, { isHidden });
    if (line === undefined) throw new ConfigurationError('The input ended. Nothing was written.');
    const text = line.trim() || usual;
    if (text === undefined && isOptional) return undefined;
    const problem = problemIn({ [name]: text ?? '' });
    if (problem === undefined) return name === 'url' || name === 'siteUrl' ? withScheme(text) : text;
    output.note(problem);
  }
}
