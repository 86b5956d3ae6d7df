import type { Runtime } from '../app/workspace.js';
import { DOT_ENV, type Environment } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { settingsSchema } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { findingLines } from '../print/status.js';
import { tryPlatform } from '../service/platform.js';
import { askLine } from '../terminal/person.js';

/** Answers about the platform and the reports. */
export interface Answers {
  readonly url?: string;
  readonly project?: string;
  readonly name?: string;
  readonly siteUrl?: string;
  readonly timezone?: string;
  readonly email?: string;
}

export const KEY = 'READERSHIP_API_KEY';
export const EXAMPLE = { url: 'https://platform.example.com', project: 'prj_123' };

/** Asks about the platform until it works, or the person writes the files anyway, and then about the reports. */
export async function askAll(
  given: Answers,
  environment: Environment,
  check: boolean,
  runtime: Runtime,
): Promise<{ answers: Answers; typed: string }> {
  const known = environment[KEY] ?? '';
  let answers = await askFor(['url', 'project'], given, {}, runtime);
  let typed =
    known === ''
      ? await asked('API key, from the same page; what you type is not shown: ', runtime, true)
      : '';
  while (check && (known || typed) !== '') {
    if (await works(answers, { ...environment, [KEY]: known || typed }, runtime)) break;
    const choice = await asked('Correct the answers? [Y/n, or w to write the files anyway] ', runtime);
    if (/^w/i.test(choice)) break;
    if (/^n/i.test(choice)) throw new ConfigurationError('Nothing was written.');
    answers = {
      ...answers,
      ...(await askFor(['url', 'project'], {}, answers, runtime)),
    };
    if (known === '') typed = (await asked('API key [the same]: ', runtime, true)) || typed;
    else
      runtime.output.note(
        `${KEY} comes from the environment or ${DOT_ENV}: if it is wrong, stop and correct it there.`,
      );
  }
  const defaults = { name: answers.project ?? '', timezone: HERE };
  return {
    answers: await askFor(['name', 'siteUrl', 'timezone', 'email'], answers, defaults, runtime),
    typed,
  };
}

/** Whether the platform has what Readership needs, if it is known. Prints what was found. */
export async function works(
  { url, project }: Answers,
  environment: Environment,
  runtime: Runtime,
): Promise<boolean> {
  if (url === undefined || project === undefined) return true;
  const findings = await tryPlatform(url, project, environment, runtime).catch((error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    return [{ check: 'key', verdict: 'fail' as const, words: error.message }];
  });
  runtime.output.words(findingLines(findings, runtime.output.colors));
  return !findings.some(({ verdict }) => verdict === 'fail');
}

/** What is wrong with some answers; undefined if nothing is. */
export function problemIn({
  url = EXAMPLE.url,
  project = EXAMPLE.project,
  name,
  siteUrl,
  timezone,
  email,
}: Answers): string | undefined {
  const { error } = settingsSchema.safeParse({
    baseUrl: url,
    projects: [{ id: project, name, siteUrl }],
    reports: { timezone },
    mail: { from: email },
  });
  return error && firstProblem(error);
}

const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const QUESTIONS = {
  url: "Address of the platform's API, such as https://platform.example.com",
  project: 'Project ID, from the API keys page of its dashboard',
  name: 'Name of the site in reports',
  siteUrl: 'Address of the site, so that reports link to its pages',
  timezone: 'Time zone of the reports',
  email: 'Email address for the weekly report and alerts',
};
const OPTIONAL: readonly string[] = ['siteUrl', 'email'];

/** Asks for what is not known yet, until each answer is valid. */
async function askFor(
  keys: readonly (keyof Answers)[],
  known: Answers,
  defaults: Answers,
  runtime: Runtime,
): Promise<Answers> {
  let answers = known;
  for (const key of keys)
    while (answers[key] === undefined) {
      const isOptional = OPTIONAL.includes(key);
      const fallback = defaults[key] ?? (isOptional ? 'none' : undefined);
      const shown = fallback === undefined ? '' : ` [${fallback}]`;
      const answer = (await asked(`${QUESTIONS[key]}${shown}: `, runtime)) || (defaults[key] ?? '');
      if (answer === '' && isOptional) break;
      const next = { ...answers, [key]: answer };
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
