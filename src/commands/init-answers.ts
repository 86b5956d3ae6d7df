import type { Runtime } from '../app/workspace.js';
import type { Environment } from '../config/load.js';
import { readSitemapFile, SITEMAP_LIMITS } from '../agents/sitemap-file.js';
import { firstProblem } from '../config/problems.js';
import { address } from '../config/recipients.js';
import { settingsSchema } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { connections } from '../network.js';
import { findingLines } from '../print/status.js';
import { tryPlatform } from '../service/try-platform.js';
import { timeLimit } from '../sleep.js';
import { askLine } from '../terminal/person.js';

/** Answers about the platform and the reports; those about the platform come first. */
const QUESTIONS = {
  url: "Address of the platform's API, such as https://platform.example.com",
  project: 'Project ID, from the API keys page of its dashboard',
  key: 'API key, from the same page; what you type is not shown',
  name: 'Name of the site in reports',
  siteUrl: 'Address of the site, so that reports link to its pages',
  email: 'Who gets the weekly email and alerts',
  from: 'Sender of the emails',
};
type QuestionName = keyof typeof QUESTIONS;
/** Requests for views with which platforms were tried, by the bucket in which they count. */
export type TrialRequests = Map<string, number>;
/** `sitemap` is what was found and accepted. */
export type InitAnswers = Partial<Readonly<Record<QuestionName | 'sitemap', string | undefined>>>;

const OPTIONAL: readonly QuestionName[] = ['key', 'siteUrl', 'email'];

export const KEY = 'READERSHIP_API_KEY';
export const EXAMPLE = { url: 'https://platform.example.com', project: 'prj_123' };

/**
 * Asks about the platform until it works, or the person writes the files anyway, and then about the
 * reports. The key is asked for unless the environment has it.
 */
export async function askAll(
  given: InitAnswers,
  environment: Environment,
  runtime: Runtime,
  { check, tried }: { readonly check: boolean; readonly tried: TrialRequests },
): Promise<InitAnswers> {
  const knownKey = environment[KEY] === '' ? undefined : environment[KEY];
  const platform: readonly QuestionName[] =
    knownKey === undefined ? ['url', 'project', 'key'] : ['url', 'project'];
  let answers = await askFor(platform, given, {}, runtime);
  while (check && !(await works(answers, environment, runtime, tried))) {
    const choice = await asked('Correct the answers? [Y/n, or w to write the files anyway] ', runtime);
    if (/^w/i.test(choice)) break;
    if (/^n/i.test(choice)) throw new ConfigurationError('Nothing was written.');
    const others = { ...answers, url: undefined, project: undefined, key: undefined };
    answers = await askFor(platform, others, answers, runtime);
  }
  if (knownKey !== undefined && runtime.environment[KEY] === knownKey && answers.key === undefined) {
    const question = `${KEY} is set in the environment. Store it in .env for later commands? [Y/n] `;
    if (!/^n/i.test(await asked(question, runtime))) answers = { ...answers, key: knownKey };
  }
  answers = await askFor(['name', 'siteUrl', 'email'], answers, { name: answers.project }, runtime);
  if (answers.email !== undefined)
    answers = await askFor(['from'], answers, { from: answers.email }, runtime);
  const sitemap = check ? await findSitemap(answers.siteUrl, runtime) : undefined;
  if (sitemap === undefined) return answers;
  const no = /^n/i.test(await asked(`Flag only the pages in ${sitemap} for agents? [Y/n] `, runtime));
  return no ? answers : { ...answers, sitemap };
}

/** The address of the site's sitemap, found with one request; undefined if there is none. */
export async function findSitemap(
  siteUrl: string | undefined,
  { signal }: Runtime,
): Promise<string | undefined> {
  if (siteUrl === undefined) return undefined;
  const address = `${siteUrl.replace(/\/+$/, '')}/sitemap.xml`;
  const agent = connections();
  try {
    await readSitemapFile(address, agent, timeLimit(SITEMAP_TIMEOUT_MS, signal), SITEMAP_LIMITS);
    return address;
  } catch {
    // Most sites without one answer 404, and others a page of HTML.
    signal.throwIfAborted();
    return undefined;
  } finally {
    await agent.destroy();
  }
}

const SITEMAP_TIMEOUT_MS = 5_000;

/** An address as people type it: `docs.example.com` becomes `https://docs.example.com`. */
export function withScheme<Text extends string | undefined>(name: string, text: Text): Text | string {
  if (text === undefined || (name !== 'url' && name !== 'siteUrl') || /^[a-z][a-z\d+.-]*:\/\//i.test(text))
    return text;
  return `${/^(localhost|127\.|\[::1\])/.test(text) ? 'http' : 'https'}://${text}`;
}

/** Whether the platform has what Readership needs; true without a key. Prints what was found, and counts in `tried`. */
export async function works(
  { url, project, key }: InitAnswers,
  environment: Environment,
  runtime: Runtime,
  tried: TrialRequests,
): Promise<boolean> {
  const known = key ?? environment[KEY] ?? '';
  if (url === undefined || project === undefined || known === '') return true;
  const all = { ...environment, [KEY]: known };
  const onViews = (bucket: string) => void tried.set(bucket, 1 + (tried.get(bucket) ?? 0));
  const findings = await tryPlatform(url, project, all, runtime, onViews).catch((error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    return [{ check: 'key', verdict: 'fail' as const, words: error.message }];
  });
  runtime.output.words(findingLines(findings, runtime.output.colors));
  return !findings.some(({ verdict }) => verdict === 'fail');
}

/** What is wrong with some answers; undefined if nothing is. */
export function problemIn(answers: InitAnswers): string | undefined {
  const { url = EXAMPLE.url, project = EXAMPLE.project, name, siteUrl, email, from } = answers;
  const { error = address.optional().safeParse(email).error } = settingsSchema.safeParse({
    baseUrl: url,
    projects: [{ id: project, name, siteUrl }],
    mail: { from },
  });
  return error && firstProblem(error);
}

/** Asks for what is not known yet, until each answer is valid. */
async function askFor(
  names: readonly QuestionName[],
  known: InitAnswers,
  defaults: InitAnswers,
  runtime: Runtime,
): Promise<InitAnswers> {
  let answers = known;
  for (const name of names)
    while (answers[name] === undefined) {
      const isHidden = name === 'key';
      const isOptional = OPTIONAL.includes(name);
      const before = defaults[name];
      const without = isOptional && !isHidden ? 'none' : '';
      const shown = isHidden && before !== undefined ? 'the same' : (before ?? without);
      const question = `${QUESTIONS[name]}${shown && ` [${shown}]`}: `;
      const answer = withScheme(name, (await asked(question, runtime, { isHidden })) || before);
      if (answer === undefined && isOptional) break;
      const next = { ...answers, [name]: answer ?? '' };
      const problem = problemIn(next);
      if (problem === undefined) answers = next;
      else runtime.output.note(problem);
    }
  return answers;
}

async function asked(
  question: string,
  { signal }: Runtime,
  { isHidden } = { isHidden: false },
): Promise<string> {
  const line = await askLine(question, signal, { isHidden });
  if (line === undefined) throw new ConfigurationError('The input ended. Nothing was written.');
  return line.trim();
}
