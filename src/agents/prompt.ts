import Handlebars from 'handlebars';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ConfigurationError, messageOf } from '../errors.js';
import { ownOrBuiltIn, packageFile } from '../files.js';
import { reasonWords } from './reasons.js';
import type { ConsideredPage } from './select.js';

/** In characters, for a prompt and for a message to an agent. */
export const MAX_PROMPT_LENGTH = 8_000;

/** Where prompts come from. */
interface PromptPlace {
  /** The workspace's `templates/prompts/` overrides the built-in prompts. */
  readonly workspaceDir: string | undefined;
}

/** The page that a prompt is about, and the reference of its job. */
interface PromptPage {
  readonly project: string;
  readonly path: string;
  readonly reason: string;
  readonly reference: string;
}

/** Shown in place of the reference of a job that is not planned yet. */
export const REFERENCE_TO_COME = '(assigned when the job is planned)';

/** A flagged page as presented for approval, before it has a job. */
export interface Proposal extends ConsideredPage {
  /** The part of the prompt that may be edited: all but the reference. */
  readonly instruction: string;
  readonly prompt: string;
  /** Identifies the exact prompt, so that what is sent is what was approved. */
  readonly digest: string;
}

export function proposalOf(project: string, page: ConsideredPage, place: PromptPlace): Proposal {
  const about = { project, path: page.path, reason: reasonWords(page.why), reference: REFERENCE_TO_COME };
  const instruction = fill(ownOrBuiltIn(INSTRUCTION, place.workspaceDir), valuesOf(about)).trimEnd();
  const prompt = composePrompt(about, instruction, place);
  return {
    ...page,
    instruction,
    prompt,
    digest: promptDigest(prompt),
  };
}

const promptDigest = (prompt: string): string =>
  createHash('sha256').update(prompt).digest('hex').slice(0, 8);

/** The digest of a job's prompt, as its page was proposed. */
export const proposedDigest = (prompt: string, reference: string): string =>
  promptDigest(prompt.replaceAll(reference, REFERENCE_TO_COME));

/**
 * The exact text sent to the agent for a page: an instruction, by default the template's, and the
 * reference. Templates never see a raw path: `{{path}}` is already quoted, so a workspace's
 * template cannot forget that. The reference is added after it for the same reason. Throws a
 * `ConfigurationError` when the template cannot be used or the text is too long.
 */
export function composePrompt(page: PromptPage, instruction: string, { workspaceDir }: PromptPlace): string {
  const given = instruction.replaceAll(REFERENCE_TO_COME, page.reference).trimEnd();
  const prompt = `${given}\n\n${fill(REFERENCE, valuesOf(page))}`;
  if (prompt.length > MAX_PROMPT_LENGTH)
    throw new ConfigurationError(
      `The prompt for ${page.path} has ${prompt.length} characters, more than ${MAX_PROMPT_LENGTH}. Shorten ${ownOrBuiltIn(INSTRUCTION, workspaceDir)}.`,
    );
  return prompt;
}

const valuesOf = ({ path, project, reason, reference }: PromptPage) => ({
  path: asciiJson(path),
  project: asciiJson(project),
  reason,
  reference,
});

/**
 * A text as a JSON string of printable ASCII, which cannot close its quotes, break its line or
 * change the text direction.
 */
const asciiJson = (path: string): string =>
  JSON.stringify(path).replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The workspace may replace the instruction, but not the reference. */
const INSTRUCTION = 'templates/prompts/improve.hbs';
const REFERENCE = packageFile('templates/prompts/reference.hbs');

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
