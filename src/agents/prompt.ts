import Handlebars from 'handlebars';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError, messageOf } from '../errors.js';
import { searchedDirs } from '../files.js';

/** Where prompts come from, and how long one may be. */
export interface PromptRules {
  /** The workspace's own `templates/prompts/` comes before the built-in one. */
  readonly workspaceDir: string | undefined;
  readonly maxPromptLength: number;
}

/** The page that a prompt is about, and the reference of its job. */
export interface PromptPage {
  readonly project: string;
  readonly path: string;
  readonly reason: string;
  readonly reference: string;
}

/** Shown instead of the reference of a job that is not planned yet. */
export const REFERENCE_TO_COME = '(given when the job is planned)';

/**
 * The exact text sent to the agent for a page. Templates never see a raw path: `{{path}}` is quoted already, so that
 * one of a workspace cannot forget it. The reference is added after it for the same reason. Throws a
 * `ConfigurationError` when the template cannot be used or the text is too long.
 */
export function composePrompt(
  { project, path, reason, reference }: PromptPage,
  { workspaceDir, maxPromptLength }: PromptRules,
): string {
  const file = templateFile('improve', workspaceDir);
  const values = { path: quoted(path), project: quoted(project), reason, reference };
  const ending = fill(templateFile('reference', undefined), values);
  const prompt = `${fill(file, values).trimEnd()}\n\n${ending}`;
  if (prompt.length > maxPromptLength)
    throw new ConfigurationError(
      `The prompt for ${path} has ${prompt.length} characters, more than improve.maxPromptLength (${maxPromptLength}). Shorten ${file}, or raise the limit.`,
    );
  return prompt;
}

/**
 * A text as a JSON string of printable ASCII: it cannot end its quotes, nor its line, nor turn the direction of the
 * text, whatever is in it.
 */
export const quoted = (path: string): string =>
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
