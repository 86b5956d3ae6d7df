import Handlebars, { type TemplateDelegate } from 'handlebars';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.js';
import { faultOf } from './fault.js';
import { ignoreMissing } from '../files.js';
import { searchedDirs } from '../places.js';
import { templateFunctions } from './template-functions.js';

/** What a report can be filled into, and the end of the template's file name. Only HTML is escaped. */
const SHOWINGS = { page: '.html.hbs', text: '.text.hbs', mail: '.mail.html.hbs' } as const;

export type Showing = keyof typeof SHOWINGS;

/** The templates of the package and of the workspace, by their path below `templates/`; `.html.hbs` is left out of it. */
export type Templates = ReadonlyMap<string, string>;

/** Reads all templates. One in the workspace replaces the built-in one of the same path. */
export async function readTemplates(workspaceDir: string | undefined): Promise<Templates> {
  const found = new Map<string, string>();
  for (const dir of searchedDirs(workspaceDir).toReversed()) {
    for (const file of await templateFiles(join(dir, 'templates'))) {
      found.set(nameOf(file.replaceAll('\\', '/')), await readFile(join(dir, 'templates', file), 'utf8'));
    }
  }
  return found;
}

async function templateFiles(dir: string): Promise<string[]> {
  const files = await readdir(dir, { recursive: true }).catch(ignoreMissing);
  return (files ?? []).filter((file) => file.endsWith(SHOWINGS.page) || file.endsWith(SHOWINGS.text));
}

/** `layouts/page` of `layouts/page.html.hbs`, and `weekly.text.hbs` as it is. */
const nameOf = (file: string): string =>
  file.endsWith(SHOWINGS.page) ? file.slice(0, -SHOWINGS.page.length) : file;

/** Whether a report can be shown so. */
export const canShow = (report: string, showing: Showing, templates: Templates): boolean =>
  templates.has(nameOf(report + SHOWINGS[showing]));

/** Fills a report's template. A field that the template names and the model lacks is an error. */
export function fillTemplate(report: string, showing: Showing, templates: Templates, model: object): string {
  const file = report + SHOWINGS[showing];
  const template = templates.get(nameOf(file));
  if (template === undefined) {
    throw new ConfigurationError(
      `The report ${report} has no template for ${showing === 'page' ? 'its page' : `its ${showing}`}: expected templates/${file}`,
    );
  }
  return fill(report, `templates/${file}`, template, model, { templates, plain: showing === 'text' });
}

/** Fills a line of plain text, such as a subject: nothing is escaped. `key` is where report.yaml has it. */
export const fillLine = (report: string, key: string, line: string, model: object): string =>
  fill(report, `${key} in report.yaml`, line, model, { plain: true });

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
    for (const [name, text] of templates)
      environment.registerPartial(name, compile(environment, text, plain));
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
