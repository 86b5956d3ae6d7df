import Handlebars from 'handlebars';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError, messageOf } from '../errors.js';
import { searchedDirs } from '../places.js';

/** Where prompts come from, and how long one may be. */
export interface PromptRules {
  /** The workspace's own `templates/prompts/` comes before the built-in one. */
  readonly workspaceDir: string | undefined;
  readonly maxPromptLength: number;
}

/** The exact text sent to the agent for a page: see `compose`. */
export const composePrompt = (
  page: { readonly path: string; readonly reason: string },
  rules: PromptRules,
): string => compose('improve', page.path, { reason: page.reason }, rules);

/** The exact text that asks why a job ended without a change: see `compose`. */
export const composeQuestion = (job: { readonly path: string }, rules: PromptRules): string =>
  compose('ask-why', job.path, {}, rules);

/**
 * Fills a prompt template. Templates never see a raw path: `{{path}}` is quoted already, so that one of a workspace
 * cannot forget it. Throws a `ConfigurationError` when the template is at fault or the text is too long.
 */
function compose(
  name: string,
  path: string,
  values: Readonly<Record<string, string>>,
  { workspaceDir, maxPromptLength }: PromptRules,
): string {
  const file = templateFile(name, workspaceDir);
  const prompt = fill(file, { ...values, path: quotedPath(path) });
  if (prompt.length > maxPromptLength)
    throw new ConfigurationError(
      `The prompt for ${path} has ${prompt.length} characters, more than improve.maxPromptLength (${maxPromptLength}). Shorten ${file}, or raise the bound.`,
    );
  return prompt;
}

/**
 * A path as a JSON string of printable ASCII: it cannot end its quotes, nor its line, nor turn the direction of the
 * text, whatever is in it.
 */
export const quotedPath = (path: string): string =>
  JSON.stringify(path).replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function templateFile(name: string, workspaceDir: string | undefined): string {
  const files = searchedDirs(workspaceDir).map((dir) => join(dir, 'templates', 'prompts', `${name}.hbs`));
  const file = files.find((candidate) => existsSync(candidate));
  if (file === undefined) throw new ConfigurationError(`There is no prompt template ${files.join(', nor ')}`);
  return file;
}

function fill(file: string, values: Readonly<Record<string, string>>): string {
  try {
    const options = { strict: true, noEscape: true };
    return Handlebars.create().compile<typeof values>(readFileSync(file, 'utf8'), options)(values);
  } catch (cause) {
    throw new ConfigurationError(`The prompt template ${file} cannot be used: ${messageOf(cause)}`, {
      cause,
    });
  }
}
