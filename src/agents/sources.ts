import type { CodeHost } from './code-host.js';
import type { PullRequest } from './dialects.js';

/** The pages that a pull request changes, as far as its files tell. */
export async function pathsOf(
  { codeHost, signal }: { readonly codeHost: CodeHost; readonly signal?: AbortSignal },
  repository: string,
  pullRequest: PullRequest,
  pages: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const files = await codeHost.filesOf(repository, pullRequest, signal);
  const { files: pattern } = codeHost.settings;
  const paths = files.flatMap((file) => possiblePaths(file, pattern).find((path) => pages.has(path)) ?? []);
  return [...new Set(paths)];
}

/** The parts of a pattern such as `docs{path}.{md,mdx}` as regular expressions: before the path, and after it. */
function patternParts(pattern: string): [head: RegExp, tail: RegExp] {
  const expression = (part: string): string =>
    part
      .replaceAll(/[.+^$()|[\]\\?]/g, '\\$&')
      .replaceAll(/\{([^{}]*)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`)
      .replaceAll('**', '\0')
      .replaceAll('*', '[^/]*')
      .replaceAll('\0', '.*');
  const [head = '', tail = ''] = pattern.replace(/^\//, '').split('{path}');
  return [new RegExp(`^${expression(head)}$`), new RegExp(`^(/.*)${expression(tail)}$`)];
}

/** The paths that a page may have whose source is this file, most specific first. */
export function possiblePaths(file: string, pattern: string): string[] {
  const [head, tail] = patternParts(pattern);
  const rooted = `/${file}`;
  return [...rooted.matchAll(/\//g)].flatMap(({ index }) => {
    if (!head.test(rooted.slice(1, Math.max(1, index)))) return [];
    const source = tail.exec(rooted.slice(index))?.[1]?.replace(/\/(?:index|_index|readme)$/i, '');
    if (source === undefined) return [];
    return source === '' ? ['/'] : [source, `${source}/`, `${source}.html`];
  });
}
