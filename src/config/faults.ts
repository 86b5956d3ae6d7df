import { type Document, isMap, isNode, isScalar, type LineCounter, visit } from 'yaml';
import type { z } from 'zod';

/** What is wrong with a configuration file, and where. */
export interface Fault {
  readonly line: number;
  readonly message: string;
}

type Issue = z.core.$ZodIssue;

/** The faults of a parsed document, in the order of its lines: a missing key stands at the line of what lacks it. */
export function faultsOf(issues: readonly Issue[], document: Document, lines: LineCounter): Fault[] {
  return issues
    .flatMap((issue) => describe(issue).map(({ path, text }) => ({ path, text })))
    .map(({ path, text }) => ({
      line: lineOf(path, document, lines),
      message: path.length === 0 ? text : `${nameOf(path)}: ${text}`,
    }))
    .sort((left, right) => left.line - right.line);
}

/**
 * What YAML takes for something else: aliases that name nothing, in a list of patterns an asterisk that lacks its
 * quotes; and keys that are no text.
 */
export function strayYaml(document: Document, lines: LineCounter): Fault[] {
  const faults: Fault[] = [];
  const tell = (offset: number, message: string) => {
    faults.push({ line: lines.linePos(offset).line, message });
  };
  visit(document, {
    Alias: (_, alias) => {
      const { source, range } = alias;
      if (alias.resolve(document) === undefined)
        tell(range?.[0] ?? 0, `YAML takes *${source} for an alias; put it in quotes: '*${source}'`);
    },
    Pair: (_, { key, value }) => {
      if (isScalar(key) && typeof key.value === 'string') return;
      const node = isNode(key) ? key : value;
      tell((isNode(node) ? node.range?.[0] : 0) ?? 0, `not the name of a setting: ${String(key)}`);
    },
  });
  return faults;
}

function describe(issue: Issue): { path: PropertyKey[]; text: string }[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...issue.path, key],
      text: 'no such setting; `readership init` writes a file with all of them',
    }));
  if (issue.code === 'invalid_type' && issue.input === undefined)
    return [{ path: issue.path, text: 'is missing' }];
  return [{ path: issue.path, text: issue.message }];
}

/** `projects[0].id` */
const nameOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (name, key) =>
      typeof key === 'number' ? `${name}[${key}]` : name === '' ? String(key) : `${name}.${String(key)}`,
    '',
  );

function lineOf(path: readonly PropertyKey[], document: Document, lines: LineCounter): number {
  const offset = keyOffset(path, document) ?? valueOffset(path, document);
  if (offset !== undefined) return lines.linePos(offset).line;
  return path.length === 0 ? 1 : lineOf(path.slice(0, -1), document, lines);
}

function keyOffset(path: readonly PropertyKey[], document: Document): number | undefined {
  const parent = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find((item) => isScalar(item.key) && item.key.value === path.at(-1));
  return isNode(pair?.key) ? pair.key.range?.[0] : undefined;
}

function valueOffset(path: readonly PropertyKey[], document: Document): number | undefined {
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNode(node) ? node.range?.[0] : undefined;
}
