import Handlebars from 'handlebars';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigurationError } from '../errors.js';
import type { FlaggedPage } from './select.js';

const TEMPLATE = fileURLToPath(new URL('../../templates/prompts/improve.hbs', import.meta.url));

/**
 * The exact text sent to the agent for a flagged page. The path stands in it as a JSON string: it cannot end its own
 * quotes or its own line. Throws a `ConfigurationError` when the text is longer than `maxLength` characters.
 */
export function composePrompt(page: FlaggedPage, maxLength: number): string {
  const handlebars = Handlebars.create();
  handlebars.registerHelper('quoted', (text: unknown) => JSON.stringify(text));
  const template = handlebars.compile<FlaggedPage>(readFileSync(TEMPLATE, 'utf8'), {
    strict: true,
    noEscape: true,
  });
  const prompt = template(page);
  if (prompt.length > maxLength)
    throw new ConfigurationError(
      `The prompt for ${page.path} has ${prompt.length} characters, more than improve.maxPromptLength (${maxLength}). Shorten ${TEMPLATE}, or raise the bound.`,
    );
  return prompt;
}
