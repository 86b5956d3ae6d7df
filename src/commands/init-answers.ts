import { isTooShort, SMTP_URL_VARIABLE, tooShort } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { typedAddress } from '../config/recipients.js';
import { settingsSchema } from '../config/schema.js';
import type { Runtime } from '../app/workspace.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { parseSmtpUrl } from '../mail/smtp-server.js';
import { askLine } from '../terminal/person.js';

/** What stands for an answer that is not given. */
export const EXAMPLE = { url: 'https://platform.example.com', project: 'prj_123' };

/** What is known of a new workspace. */
export type InitAnswers = Partial<
  Record<'url' | 'project' | 'key' | 'name' | 'siteUrl' | 'email' | 'smtpUrl', string | undefined>
>;

/** Whether what is answered works, with a line about each check. True if too little is known to try it. */
export type Trials = Readonly<Record<'platform' | 'mailServer', (answers: InitAnswers) => Promise<boolean>>>;

export const NOTHING_WRITTEN = 'Nothing was written. --no-check writes the files anyway.';

/** An address as people type it: `docs.example.com` becomes `https://docs.example.com`. */
export function withScheme(text: string | undefined): string | undefined {
  if (text === undefined || text === '' || /^[a-z][a-z\d+.-]*:\/\//i.test(text)) return text;
  return `${/^(localhost|127\.|\[::1\])/.test(text) ? 'http' : 'https'}://${text}`;
}

/** What is wrong with some answers; undefined if nothing is. */
export function problemIn(answers: InitAnswers): string | undefined {
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
export async function interview(given: InitAnswers, trials: Trials, runtime: Runtime): Promise<InitAnswers> {
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
