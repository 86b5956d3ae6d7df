import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLACE = /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g;

/**
 * A stack with positions in the source files, if the program has source maps. Node.js can do the
 * same, but reads every map whenever a file is loaded.
 */
export const stackInSource = (stack: string): string =>
  stack.replaceAll(PLACE, (place, url: string, line: string, column: string) => {
    try {
      const file = fileURLToPath(url);
      const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload);
      const entry = map.findEntry(Number(line) - 1, Number(column) - 1);
      if (!('originalSource' in entry)) return place;
      const source = relative(dirname(dirname(file)), resolve(dirname(file), entry.originalSource));
      return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
    } catch {
      // Without a map, the position in the bundle is still useful.
      return place;
    }
  });
