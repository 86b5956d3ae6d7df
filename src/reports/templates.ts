import Handlebars, { type HelperDelegate, type TemplateDelegate } from 'handlebars';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { problemOf } from '../config/problems.js';
import { ConfigurationError } from '../errors.js';
import { ignoreMissing, isBuiltIn, searchedDirs } from '../files.js';
import { templateFunctions } from './template-functions.js';

/** A template that cannot be read, parsed or filled; the message names its file. */
export class TemplateError extends ConfigurationError {}

/** What a template makes, and the ending of its file. The email is the page, with its styles inlined. Only HTML is escaped. */
const ENDINGS = { html: '.html.hbs', text: '.text.hbs' } as const;

export type TemplateForm = keyof typeof ENDINGS;

/**
 * The files of all templates, by their path below `templates/` without a final `.html.hbs`. They
 * are read when used, so a broken one stops only the reports that use it.
 */
export type Templates = ReadonlyMap<string, string>;

/** Finds all templates. A template in the workspace replaces the built-in one with the same path. */
export async function findTemplates(workspaceDir: string | undefined): Promise<Templates> {
  const found = new Map<string, string>();
  for (const dir of searchedDirs(workspaceDir).toReversed()) {
    const files = await readdir(join(dir, 'templates'), { recursive: true }).catch(ignoreMissing);
    for (const file of files ?? [])
      if (Object.values(ENDINGS).some((ending) => file.endsWith(ending)))
        found.set(nameOf(file.replaceAll('\\', '/')), join(dir, 'templates', file));
  }
  return found;
}

/** `layouts/page` of `layouts/page.html.hbs`, and `weekly.text.hbs` as it is. */
const nameOf = (file: string): string =>
  file.endsWith(ENDINGS.html) ? file.slice(0, -ENDINGS.html.length) : file;

/** The template for reports without their own; it shows the rows as tables. */
const ANY_REPORT = 'report';

/** Fills a report's template. A field that is missing from the model is an error. */
export function fillTemplate(
  report: string,
  form: TemplateForm,
  templates: Templates,
  model: object,
): string {
  const names = [report, ANY_REPORT].map((name) => nameOf(name + ENDINGS[form]));
  return new Filling(report, templates, form).fillFirst(names, model);
}

/** Fills page templates repeatedly; each is read once. `functions` are additional functions for them. */
export function pageFiller(
  templates: Templates,
  functions: Readonly<Record<string, HelperDelegate>>,
): (template: string, model: object) => string {
  const filling = new Filling('web app', templates, 'html', functions);
  return (name, model) => filling.fillFirst([name], model);
}

/** Fills a line of plain text, such as a subject. `source` is its file and key. */
export const fillLine = (report: string, source: string, line: string, model: object): string =>
  new Filling(report, new Map(), 'text').fill(source, model, line);

/** One template being filled, with its layouts and partials. */
class Filling {
  readonly #environment = Handlebars.create();
  readonly #known = new Map<string, TemplateDelegate>();
  /** The file being filled now, so that an error names that file and not the one including it. */
  #file = '';

  constructor(
    private readonly report: string,
    private readonly templates: Templates,
    private readonly form: TemplateForm,
    functions: Readonly<Record<string, HelperDelegate>> = {},
  ) {
    this.#environment.registerHelper({ ...templateFunctions, ...functions });
    for (const [name, file] of templates) this.#environment.registerPartial(name, this.#partial(file));
  }

  /** Fills the first of some templates that there is. */
  fillFirst(names: readonly string[], model: object): string {
    const [file] = names.flatMap((name) => this.templates.get(name) ?? []);
    if (file === undefined)
      throw new ConfigurationError(`There is no template ${names.join(' or ')}: reinstall Readership`);
    return this.fill(file, model);
  }

  fill(file: string, model: object, text?: string): string {
    return this.#in(file, () => {
      const template = this.#compiled(file, text);
      try {
        return template(model);
      } catch {
        // It fails again, with an error that lists the fields that there are.
        return template(listingFields(model));
      }
    });
  }

  #partial(file: string): TemplateDelegate {
    return (context: unknown, options?: PartialOptions) => {
      const caller = this.#file;
      const block = options?.data?.['partial-block'];
      // The block passed to a layout belongs to the template that uses the layout.
      const data = block && {
        ...options.data,
        'partial-block': ((...given) => this.#in(caller, () => block(...given))) satisfies TemplateDelegate,
      };
      return this.#in(file, () =>
        this.#compiled(file)(context, data === undefined ? options : { ...options, data }),
      );
    };
  }

  #in(file: string, write: () => string): string {
    const outer = this.#file;
    this.#file = file;
    try {
      return write();
    } catch (cause) {
      if (cause instanceof TemplateError) throw cause;
      const problem = problemOf(cause)
        .split('\n', 2)
        .join(' ')
        .replace(
          /^"(.*)" not defined in undefined - (\d+):(\d+)$/s,
          'line $2, column $3: “$1” belongs to a field that does not exist',
        )
        .replace(/^"(.*)" not defined in (.*) - (\d+):\d+$/s, 'line $3: there is no “$1”; there are $2');
      throw new TemplateError(
        `The report ${this.report} cannot be written: ${file}: ${problem}\n${adviceFor(file, this.report)}`,
        { cause },
      );
    } finally {
      this.#file = outer;
    }
  }

  /** A template, read and compiled on first use. */
  #compiled(file: string, text?: string): TemplateDelegate {
    const known = this.#known.get(file);
    if (known !== undefined) return known;
    const parsed = this.#environment.parse(text ?? readFileSync(file, 'utf8'));
    new EveryFieldRequired().accept(parsed);
    const compiled = this.#environment.compile(parsed, { strict: true, noEscape: this.form === 'text' });
    this.#known.set(file, compiled);
    return compiled;
  }
}

/** A copy of a model whose objects list their fields as text, which Handlebars includes in its errors. Slow. */
function listingFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(listingFields);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const copy = Object.create(LISTING) as Record<string, unknown>;
  for (const [key, field] of Object.entries(value)) copy[key] = listingFields(field);
  return copy;
}

/** One for all copies: a prototype of its own would give each a hidden class, which only a full collection frees. */
const LISTING = {
  toString(this: object): string {
    return Object.keys(this).join(', ');
  },
};

/** The part of Handlebars' options for partials that is used here. */
interface PartialOptions {
  readonly data?: { readonly 'partial-block'?: TemplateDelegate };
}

/** Strict mode alone accepts a missing field that is passed to a helper, as in `{{#if missing}}`. */
class EveryFieldRequired extends Handlebars.Visitor {
  override PathExpression(path: hbs.AST.PathExpression): void {
    Object.assign(path, { strict: true });
  }
}

const adviceFor = (file: string, report: string): string =>
  isBuiltIn(file)
    ? `That file is built in and expects the built-in report ${report}: check what reports/ and templates/ in your workspace override.`
    : `Fix that file (if you copied it from an earlier version, copy it again), then check the result: readership report ${report}`;
