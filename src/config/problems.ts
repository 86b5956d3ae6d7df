import { basename } from 'node:path';
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import { ConfigurationError, messageOf } from '../errors.js';
import { nearest } from '../format/text.js';

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

type Issue = z.core.$ZodIssue;

interface YamlFile<Value> {
  readonly path: string;
  readonly schema: z.ZodType<Value>;
  /** The advice for a key that is not in the schema. */
  readonly unknownKey: string;
  /** By their paths, such as `history.maxWait`. */
  readonly retired?: ReadonlyMap<string, RetiredSetting>;
}

export interface RetiredSetting {
  /** `refuse` where ignoring the setting would send, spend or load more than it allowed. */
  readonly then: 'refuse' | 'notice';
  /** What applies now, in words without a capital and a period. */
  readonly nowApplies: string;
}

const retiredWords = ({ nowApplies }: RetiredSetting): string =>
  `is no longer a setting: ${nowApplies}. Remove it.`;

/**
 * Parses the text of a YAML file written by people: its value, and notices about retired settings that it has and that
 * have no effect. Throws a `ProblemsError`.
 */
export function parseYaml<Value>(
  raw: string,
  { path, schema, unknownKey, retired = new Map() }: YamlFile<Value>,
): { readonly value: Value; readonly notices: readonly string[] } {
  // The library rejects a list after a byte order mark, with which some editors begin a file.
  const text = raw.replace(/^\uFEFF/, '');
  const lines = new LineCounter();
  let document: Document.Parsed;
  try {
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      logLevel: 'error',
    });
  } catch (error) {
    // The library descends into brackets until there is no stack left.
    if (!(error instanceof RangeError)) throw error;
    throw new ProblemsError(path, [{ line: 1, message: 'brackets or lists are nested too deeply' }]);
  }
  if (document.errors.length > 0) throw new ProblemsError(path, syntaxProblems(text, document, lines));
  const stray = strayYaml(document, lines);
  if (stray.length > 0) throw new ProblemsError(path, stray);
  const notices = [...retired]
    .filter(([name, { then }]) => {
      const keys = name.split('.');
      return then === 'notice' && document.hasIn(keys) && document.deleteIn(keys);
    })
    .map(([name, setting]) => `${name} in ${basename(path)} ${retiredWords(setting)}`);
  let values: unknown;
  try {
    values = document.toJS();
  } catch {
    // The library limits alias expansion, so that a small file cannot exhaust memory.
    const { line } = lines.linePos(text.search(/\*\w/));
    throw new ProblemsError(path, [{ line, message: TOO_MANY_ALIASES }]);
  }
  const parsed = schema.safeParse(values ?? {}, IN_OUR_WORDS);
  if (parsed.success) return { value: parsed.data, notices };
  const problems = parsed.error.issues
    .flatMap((issue) => describe(issue, schema, unknownKey, retired))
    .map(({ at, words }) => ({
      line: lines.linePos(offsetOf(at, document)).line,
      message: at.length === 0 ? words : `${nameOf(at)}: ${words}`,
    }))
    .sort((left, right) => left.line - right.line);
  throw new ProblemsError(path, problems);
}

const TOO_MANY_ALIASES = 'YAML aliases repeat too many values; write the values out instead';

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
  DUPLICATE_KEY: 'is there twice: keep one',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing here or above',
  MULTILINE_IMPLICIT_KEY: 'a colon is missing here or above',
  MULTIPLE_DOCS: 'a second document begins here; only one is read',
  TAB_AS_INDENT: 'indented with a tab: use spaces',
};

/** Only the first: one missing character often makes the lines after it invalid too. */
const syntaxProblems = (text: string, document: Document, lines: LineCounter): Problem[] =>
  document.errors.slice(0, 1).map(({ code, pos: [start] }) => {
    const words = SYNTAX[code] ?? 'not valid YAML: check quotes, brackets, colons and indentation';
    const [key = ''] = code === 'DUPLICATE_KEY' ? (/^[^:\n]*/.exec(text.slice(start)) ?? []) : [];
    return { line: lines.linePos(start).line, message: key === '' ? words : `${key}: ${words}` };
  });

/**
 * Text that YAML misinterprets: a pattern that starts with an unquoted asterisk, which YAML reads
 * as an alias, and keys that are not text.
 */
function strayYaml(document: Document, lines: LineCounter): Problem[] {
  const problems: Problem[] = [];
  const report = (offset: number, message: string) => {
    problems.push({ line: lines.linePos(offset).line, message });
  };
  visit(document, {
    Alias: (_, alias) => {
      const { source } = alias;
      if (alias.resolve(document) === undefined)
        report(startOf(alias) ?? 0, `YAML reads *${source} as an alias; put it in quotes: '*${source}'`);
    },
    Pair: (_, { key, value }) => {
      if (isScalar(key) && typeof key.value === 'string') return;
      const node = isNode(key) ? key : value;
      report(startOf(node) ?? 0, `not the name of a setting: ${String(key)}`);
    },
  });
  return problems;
}

function describe(
  issue: Issue,
  schema: z.ZodType,
  unknownKey: string,
  retired: ReadonlyMap<string, RetiredSetting>,
) {
  if (issue.code === 'unrecognized_keys') {
    const names = namesAt(schema, issue.path);
    return issue.keys.map((key) => {
      const at = [...issue.path, key];
      const setting = retired.get(at.join('.'));
      if (setting !== undefined) return { at, words: retiredWords(setting) };
      const near = nearest(key, names);
      return { at, words: near === undefined ? unknownKey : `unknown setting; did you mean ${near}?` };
    });
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  return [{ at: issue.path, words: isMissing ? 'is missing' : issue.message }];
}

/** The names of the settings that a schema has at a path. */
function namesAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at: z.core.JSONSchema._JSONSchema[] = [jsonSchemaOf(schema)];
  for (const key of path)
    at = at.flatMap(variants).flatMap(({ items, properties, additionalProperties }) => {
      const next = typeof key === 'number' ? items : (properties?.[String(key)] ?? additionalProperties);
      return next === undefined || next instanceof Array ? [] : [next];
    });
  return at.flatMap(variants).flatMap(({ properties = {} }) => Object.keys(properties));
}

const variants = (schema: z.core.JSONSchema._JSONSchema): z.core.JSONSchema.BaseSchema[] =>
  typeof schema === 'boolean' ? [] : [schema, ...(schema.anyOf ?? []).flatMap(variants)];

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
      ? node.items.find((item) => isScalar(item.key) && item.key.value === key)
      : undefined;
    node = isSeq(node) ? node.items[Number(key)] : pair?.value;
    const start = startOf(pair?.key ?? node);
    if (start === undefined) break;
    offset = start;
  }
  return offset;
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);
