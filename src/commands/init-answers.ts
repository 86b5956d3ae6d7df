import type { Runtime } from '../app/workspace.js';
import type { Environment } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { settingsSchema } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { findingLines } from '../print/status.js';
import { tryPlatform } from '../service/try-platform.js';
import { askLine } from '../terminal/person.js';

/** Answers about the platform and the reports; those about the platform come first. */
const QUESTIONS = {
  url: "Address of the platform's API, such as https://platform.example.com",
  project: 'Project ID, from the API keys page of its dashboard',
  key: 'API key, from the same page; what you type is not shown',
  name: 'Name of the site in reports',
  siteUrl: 'Address of the site, so that reports link to its pages',
  timezone: 'Time zone of the reports',
  email: 'Email address for the weekly report and alerts',
};
type Name = keyof typeof QUESTIONS;
export type Answers = Partial<Readonly<Record<Name, string | undefined>>>;

const OPTIONAL: readonly Name[] = ['key', 'siteUrl', 'email'];
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const KEY = 'READERSHIP_API_KEY';
export const EXAMPLE = { url: 'https://platform.example.com', project: 'prj_123' };

/**
 * Asks about the platform until it works, or the person writes the files anyway, and then about the
 * reports. The key is asked for unless the environment has it.
 */
export async function askAll(
  given: Answers,
  environment: Environment,
  check: boolean,
  runtime: Runtime,
): Promise<Answers> {
  const platform: readonly Name[] = environment[KEY] ? ['url', 'project'] : ['url', 'project', 'key'];
  let answers = await askFor(platform, given, {}, runtime);
  while (check && !(await works(answers, environment, runtime))) {
    const choice = await asked('Correct the answers? [Y/n, or w to write the files anyway] ', runtime);
    if (/^w/i.test(choice)) break;
    if (/^n/i.test(choice)) throw new ConfigurationError('Nothing was written.');
    const others = { ...answers, url: undefined, project: undefined, key: undefined };
    answers = await askFor(platform, others, answers, runtime);
  }
  const defaults = { name: answers.project, timezone: HERE };
  return askFor(['name', 'siteUrl', 'timezone', 'email'], answers, defaults, runtime);
}

/** Whether the platform has what Readership needs; true without a key. Prints what was found. */
export async function works(
  { url, project, key }: Answers,
  environment: Environment,
  runtime: Runtime,
): Promise<boolean> {
  const known = key ?? environment[KEY] ?? '';
  if (url === undefined || project === undefined || known === '') return true;
  const all = { ...environment, [KEY]: known };
  const findings = await tryPlatform(url, project, all, runtime).catch((error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    return [{ check: 'key', verdict: 'fail' as const, words: error.message }];
  });
  runtime.output.words(findingLines(findings, runtime.output.colors));
  return !findings.some(({ verdict }) => verdict === 'fail');
}

/** What is wrong with some answers; undefined if nothing is. */
export function problemIn(answers: Answers): string | undefined {
  const { url = EXAMPLE.url, project = EXAMPLE.project, name, siteUrl, timezone, email } = answers;
  const { error } = settingsSchema.safeParse({
    baseUrl: url,
    projects: [{ id: project, name, siteUrl }],
    reports: { timezone },
    mail: { from: email },
  });
  return error && firstProblem(error);
}

/** Asks for what is not known yet, until each answer is valid. */
async function askFor(
  names: readonly Name[],
  known: Answers,
  defaults: Answers,
  runtime: Runtime,
): Promise<Answers> {
  let answers = known;
  for (const name of names)
    while (answers[name] === undefined) {
      const isHidden = name === 'key';
      const isOptional = OPTIONAL.includes(name);
      const before = defaults[name];
      const without = isOptional && !isHidden ? 'none' : '';
      const shown = isHidden && before !== undefined ? 'the same' : (before ?? without);
      const question = `${QUESTIONS[name]}${shown && ` [${shown}]`}: `;
      const answer = (await asked(question, runtime, isHidden)) || before;
      if (answer === undefined && isOptional) break;
      const next = { ...answers, [name]: answer ?? '' };
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
