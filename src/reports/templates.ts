import Handlebars, { type TemplateDelegate } from 'handlebars';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.js';
import { faultOf } from './fault.js';
import { ignoreMissing, searchedDirs } from './places.js';
import { templateFunctions } from './template-functions.js';

const EXTENSION = '.html.hbs';

/** The templates of the package and of the workspace, by their path below `templates/`, without the extension. */
export type Templates = ReadonlyMap<string, string>;

/** Reads all templates. One in the workspace replaces the built-in one of the same path. */
export async function readTemplates(workspaceDir: string | undefined): Promise<Templates> {
  const found = new Map<string, string>();
  for (const dir of searchedDirs(workspaceDir).toReversed()) {
    for (const file of await templateFiles(join(dir, 'templates'))) {
      const name = file.slice(0, -EXTENSION.length).replaceAll('\\', '/');
      found.set(name, await readFile(join(dir, 'templates', file), 'utf8'));
    }
  }
  return found;
}

async function templateFiles(dir: string): Promise<string[]> {
  const files = await readdir(dir, { recursive: true }).catch(ignoreMissing);
  return (files ?? []).filter((file) => file.endsWith(EXTENSION));
}

/** Fills the page of a report. A field that the template names and the model lacks is an error. */
export function fillPage(report: string, templates: Templates, model: object): string {
  const page = templates.get(report);
  if (page === undefined) {
    throw new ConfigurationError(
      `The report ${report} has no template: expected templates/${report}${EXTENSION}`,
    );
  }
  return fill(report, `templates/${report}${EXTENSION}`, page, model, { templates });
}

/** Fills a line of plain text, such as a subject: nothing is escaped. */
export const fillLine = (report: string, line: string, model: object): string =>
  fill(report, 'the subject in report.yaml', line, model, { plain: true });

function fill(
  report: string,
  source: string,
  template: string,
  model: object,
  { templates = new Map(), plain = false }: { templates?: Templates; plain?: boolean },
): string {
  const environment = Handlebars.create();
  environment.registerHelper(templateFunctions);
  try {
    for (const [name, text] of templates) environment.registerPartial(name, compile(environment, text));
    return compile(environment, template, plain)(model);
  } catch (cause) {
    throw new ConfigurationError(`The report ${report} cannot be written: ${faultOf(cause)} (in ${source})`, {
      cause,
    });
  }
}

const compile = (environment: typeof Handlebars, template: string, noEscape = false): TemplateDelegate => {
  const parsed = environment.parse(template);
  new EveryFieldRequired().accept(parsed);
  return environment.compile(parsed, { strict: true, noEscape });
};

/** Strict mode alone lets a missing field pass where it is handed to a helper, as in `{{#if missing}}`. */
class EveryFieldRequired extends Handlebars.Visitor {
  override PathExpression(path: hbs.AST.PathExpression): void {
    Object.assign(path, { strict: true });
  }
}
