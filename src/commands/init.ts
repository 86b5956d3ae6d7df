import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readSitemapFile } from '../agents/sitemap.js';
import { guessVariants } from '../agents/ranking.js';
import { openOrCreateState } from '../app/open.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { CONFIG_FILE, DOT_ENV, readEnvironment, SMTP_URL_VARIABLE } from '../config/load.js';
import { ConfigurationError } from '../errors.js';
import { inSequence } from '../format/days.js';
import { indented } from '../format/text.js';
import { tryMailServer } from '../mail/transport.js';
import { pageOf } from '../page.js';
import { findingLines } from '../print/status.js';
import { type CheckResult, found, pass } from '../service/findings.js';
import { tryPlatform } from '../service/try-platform.js';
import { timeLimit } from '../sleep.js';
import { requestsOf } from '../state/platform.js';
import { flag, flagNamed, simpleCommand, value } from './command.js';
import {
  EXAMPLE,
  type InitAnswers,
  interview,
  NOTHING_WRITTEN,
  problemIn,
  type Trials,
  withScheme,
} from './init-answers.js';
import { type FoundSitemap, KEY, writeFiles } from './init-files.js';

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
    const valueOf = (name: string) => (environment[name] === '' ? undefined : environment[name]);
    const known = { key: valueOf(KEY), smtpUrl: valueOf(SMTP_URL_VARIABLE) };
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
    const siteUrl = noCheck ? undefined : answers.siteUrl;
    const sitemap = siteUrl === undefined ? undefined : await findSitemap(siteUrl, runtime);
    const { written, stored } = await writeFiles(workingDirectory, { ...answers, sitemap }, secrets);
    const left = stepsLeft(answers, stored);
    if (siteUrl !== undefined) left.push(...sitemapSteps(siteUrl, sitemap));
    output.data(
      [
        `Wrote ${inSequence(written)}, and added ${DOT_ENV} to .gitignore.`,
        ...indented(left.map((step) => `- ${step}`)),
        'Next: readership run',
      ].join('\n'),
    );
    if (sent.size > 0) await countRequests(sent, runtime);
    return 0;
  },
});

/** What is left to fill in. */
function stepsLeft(answers: InitAnswers, stored: ReadonlySet<string>): string[] {
  const secrets = Object.entries({ [KEY]: answers.key, [SMTP_URL_VARIABLE]: answers.smtpUrl });
  const all = [
    answers.url === undefined && `set baseUrl in ${CONFIG_FILE}`,
    answers.project === undefined && `set the project's ID in ${CONFIG_FILE}`,
    answers.key === undefined && `add ${KEY} to ${DOT_ENV}`,
    ...secrets.map(
      ([name, value]) =>
        value !== undefined &&
        !stored.has(name) &&
        `keep ${name} in the environment, because it is not in ${DOT_ENV}`,
    ),
    answers.email !== undefined &&
      answers.smtpUrl === undefined &&
      `to send emails, set ${SMTP_URL_VARIABLE} in ${DOT_ENV}: until then, they are written to data/outbox/`,
  ];
  return all.filter((step) => step !== false);
}

/** What can be done about the sitemap of the site, or about a missing one. */
function sitemapSteps(siteUrl: string, sitemap: FoundSitemap | undefined): string[] {
  if (sitemap === undefined)
    return [`no sitemap was found at ${sitemapOf(siteUrl)}: if there is one elsewhere, set improve.sitemap`];
  const { address, variants } = sitemap;
  const use = `to flag only the pages of ${address}, remove the # before improve.sitemap`;
  if (variants.length === 0) return [use];
  return [
    use,
    `translations or versions in the sitemap: ${inSequence(variants)}. Of a page in several, only the most viewed one gets a job. To change that, set improve.variants`,
  ];
}

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

const TIMEOUT_MS = 5_000;

/** Where a site has its sitemap, usually. */
const sitemapOf = (siteUrl: string): string => `${siteUrl.replace(/\/+$/, '')}/sitemap.xml`;

/** The sitemap of a site, found with one request; undefined without one. */
async function findSitemap(siteUrl: string, { signal }: Runtime): Promise<FoundSitemap | undefined> {
  const address = sitemapOf(siteUrl);
  try {
    const { root, addresses } = await readSitemapFile(address, timeLimit(TIMEOUT_MS, signal));
    const pages = root === 'urlset' ? addresses.map(({ pathname }) => pageOf(pathname)) : [];
    return { address, variants: guessVariants(pages) };
  } catch {
    // Most sites without one answer 404, and others a page of HTML.
    signal.throwIfAborted();
    return undefined;
  }
}
