import { basename } from 'node:path';
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import { ConfigurationError, messageOf } from '../errors.js';

/** A problem in a YAML file and its position. */
interface Problem {
  readonly line: number;
  readonly message: string;
}

/** All problems of a YAML file, in line order. */
export class ProblemsError extends ConfigurationError {
  constructor(
    path: string,
    readonly problems: readonly Problem[],
  ) {
    const list = problems.map(({ line, message }) => `  ${basename(path)}:${line}  ${message}`);
    const count = list.length === 1 ? 'a problem' : `${list.length} problems`;
    super(`${path} has ${count}:\n${list.join('\n')}`);
  }
}

/** The value of a YAML file written by people. Throws a `ProblemsError`. */
export function parseYaml<Value>(raw: string, path: string, schema: z.ZodType<Value>): Value {
  // The library rejects a list after a byte order mark, with which some editors begin a file.
  const text = raw.replace(/^\uFEFF/, '');
  const counter = new LineCounter();
  const at = (offset: number, message: string): Problem => ({ line: counter.linePos(offset).line, message });
  const fail = (...problems: Problem[]): never => {
    throw new ProblemsError(path, problems);
  };
  const read = <Result>(work: () => Result, otherwise: Problem): Result => {
    try {
      return work();
    } catch {
      return fail(otherwise);
    }
  };
  // The library descends into brackets until there is no stack left.
  const document = read(
    () => parseDocument(text, { lineCounter: counter, prettyErrors: false, logLevel: 'error' }),
    { line: 1, message: 'brackets or lists are nested too deeply' },
  );
  // Only the first: one missing character often makes the lines after it invalid too.
  const [error] = document.errors;
  if (error !== undefined) return fail(at(error.pos[0], SYNTAX[error.code] ?? NOT_YAML));
  // A pattern that starts with an asterisk, without quotes.
  const aliases: Problem[] = [];
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) !== undefined) return;
      const words = `YAML reads *${alias.source} as an alias; put it in quotes: '*${alias.source}'`;
      aliases.push(at(startOf(alias) ?? 0, words));
    },
  });
  if (aliases.length > 0) return fail(...aliases);
  // The library limits how far aliases expand, so that a small file cannot exhaust memory.
  const repeated = 'YAML aliases repeat too many values; write the values out instead';
  const values = read((): unknown => document.toJS(), at(text.search(/\*\w/), repeated));
  const parsed = schema.safeParse(values ?? {}, IN_OUR_WORDS);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues
    .flatMap(settingProblems)
    .map(({ path, words }) =>
      at(offsetOf(path, document), path.length === 0 ? words : `${nameOf(path)}: ${words}`),
    );
  return fail(...problems.sort((left, right) => left.line - right.line));
}

/** The problem in any thrown value, on one line; schema errors are listed by field. */
export const problemOf = (error: unknown): string =>
  error instanceof z.ZodError
    ? error.issues.map(({ path, message }) => [...path, message].join(': ')).join('; ')
    : messageOf(error);

/** The first problem of a value, without saying in which field. */
export const firstProblem = (error: z.ZodError | undefined): string => error?.issues[0]?.message ?? '';

const WHAT_TO_WRITE: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list, such as [one, two]',
  object: 'its settings, each as name: value',
  record: 'its entries, each as name: value',
};

/** What to write instead, for values whose schema has no words of its own. */
function wordsFor(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
    return `unknown setting${known.length === 0 ? '' : `; there is ${known.join(', ')}`}`;
  }
  if (issue.code === 'invalid_type') return `write ${WHAT_TO_WRITE[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `write ${issue.values.map(String).filter(Boolean).join(' or ')}`;
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return 'not a value that this setting can have';
  const isSmall = issue.code === 'too_small';
  const bound = isSmall ? issue.minimum : issue.maximum;
  const isCounted = issue.origin === 'array' || issue.origin === 'string';
  if (isSmall && isCounted && bound === 1) return 'is empty';
  const unit = !isCounted ? '' : issue.origin === 'array' ? ' entries' : ' characters';
  return `${isSmall ? 'at least' : 'at most'} ${bound}${unit}`;
}

/** How files written by people are parsed. A schema's own message takes precedence. */
export const IN_OUR_WORDS = { reportInput: true, error: wordsFor };

/** What the problems that the YAML library reports mean for somebody who writes settings. */
const SYNTAX: Readonly<Partial<Record<Document['errors'][number]['code'], string>>> = {
  BAD_INDENT: 'indented differently from the lines around it, or a bracket is missing',
  BAD_DQ_ESCAPE: 'a backslash has a meaning in double quotes: use single quotes',
  BAD_SCALAR_START: 'begins with a character that has a meaning in YAML: put the text in single quotes',
  BLOCK_AS_IMPLICIT_KEY: 'two settings are on one line, or a colon is missing',
  DUPLICATE_KEY: 'this setting is there twice: keep one',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing here or above',
  MULTILINE_IMPLICIT_KEY: 'a colon is missing here or above',
  MULTIPLE_DOCS: 'a second document begins here; only one is read',
  TAB_AS_INDENT: 'indented with a tab: use spaces',
};

const NOT_YAML = 'not valid YAML: check quotes, brackets, colons and indentation';

/** Settings of 0.4 that are gone, and what holds instead. */
const GONE = new Map([
  [
    'history.maxWait',
    'is gone: a command waits for two minutes at most, and start until it may continue; delete it',
  ],
  [
    'improve.experiment',
    'is gone: pages that were held back get jobs, and job_effects has the views before and after a merge; delete it',
  ],
]);

/** Names of secrets, which somebody may write into the file. */
const SECRET = /key|pass|secret|smtp|token/i;

/** The problems that an issue is about, each with the path of its setting. */
function settingProblems(
  issue: z.core.$ZodIssue,
): { readonly path: readonly PropertyKey[]; readonly words: string }[] {
  const { code, path, message } = issue;
  if (code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...path, key],
      words:
        GONE.get(nameOf([...path, key])) ??
        (SECRET.test(key)
          ? `${message}. A secret does not belong in this file: write it in .env next to it (docs/configuration.md)`
          : message),
    }));
  if (code === 'invalid_union') {
    // Of the forms that a value can have, the one that it has, if that shows.
    const isMeant = (form: z.core.$ZodIssue[]) =>
      form.every(
        ({ code, path }) => code === 'unrecognized_keys' || (path.length > 0 && code !== 'invalid_union'),
      );
    const meant = issue.errors.find(isMeant)?.flatMap(settingProblems);
    if (meant !== undefined)
      return meant.map((inner) => ({ path: [...path, ...inner.path], words: inner.words }));
  }
  const isMissing = code === 'invalid_type' && issue.input === undefined;
  return [{ path, words: isMissing ? 'is missing' : message }];
}

/** The schema that editors use for completion and checks, as far as JSON Schema can express it. */
export const jsonSchemaOf = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });

/** `projects[0].id` */
const nameOf = (path: readonly PropertyKey[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');

/** Where a setting is named or, in a list, begins; for a missing one, what it is missing from. */
function offsetOf(path: readonly PropertyKey[], document: Document): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const key of path) {
    const pair = isMap(node)
      ? node.items.find((item) => isScalar(item.key) && String(item.key.value) === key)
      : undefined;
    node = isSeq(node) ? node.items[Number(key)] : pair?.value;
    const start = startOf(pair?.key ?? node);
    if (start === undefined) break;
    offset = start;
  }
  return offset;
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);
