import v8 from '@vitest/coverage-v8';
import { V8CoverageProvider } from '@vitest/coverage-v8/dist/provider.js';
import type { CoverageMap } from 'istanbul-lib-coverage';
import { readdir, readFile } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ReportContext, Vitest } from 'vitest/node';

const DIST = new URL('../dist/', import.meta.url).href;

/**
 * Vitest's own coverage, plus the lines that the built command ran in separate processes, as `runCli` has them report.
 * Branches and functions are only those of the tests' own process, and a killed process reports nothing.
 */
class CoverageWithProcesses extends V8CoverageProvider {
  #directory = '';

  override initialize(vitest: Vitest): void {
    super.initialize(vitest);
    this.#directory = join(this.coverageFilesDirectory, 'processes');
    process.env['COVERAGE_OF_PROCESSES'] = this.#directory;
  }

  override async generateCoverage(context: ReportContext): Promise<CoverageMap> {
    const coverage = await super.generateCoverage(context);
    for (const [url, wasRun] of await scriptsRun(this.#directory)) {
      for (const [source, lines] of await linesRun(fileURLToPath(url), wasRun)) {
        if (!coverage.files().includes(source)) continue;
        const { statementMap, s: counts } = coverage.fileCoverageFor(source);
        for (const [statement, { start }] of Object.entries(statementMap))
          if (lines.has(start.line)) counts[statement] = (counts[statement] ?? 0) + 1;
      }
    }
    return coverage;
  }
}

export default { ...v8, getProvider: () => new CoverageWithProcesses() };

/** The scripts of the build that processes loaded, and which of their characters were run: 1, or 0. */
async function scriptsRun(directory: string): Promise<Map<string, Uint8Array>> {
  const scripts = new Map<string, Uint8Array>();
  for (const file of await readdir(directory).catch(() => [])) {
    const text = await readFile(join(directory, file), 'utf8');
    const { result } = JSON.parse(text) as Profiler.TakePreciseCoverageReturnType;
    for (const { url, functions } of result)
      if (url.startsWith(DIST)) scripts.set(url, withRun(functions, scripts.get(url)));
  }
  return scripts;
}

/** Ranges are properly nested, and the innermost one around a character shows whether it was run. */
function withRun(functions: Profiler.FunctionCoverage[], before: Uint8Array | undefined): Uint8Array {
  const ranges = functions.flatMap((one) => one.ranges);
  ranges.sort((one, other) => one.startOffset - other.startOffset || other.endOffset - one.endOffset);
  const run = new Uint8Array(ranges[0]?.endOffset ?? 0);
  for (const { startOffset, endOffset, count } of ranges) run.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return run.map((here, index) => here | (before?.[index] ?? 0));
}

/** The sources of a bundled script, each with the lines, from 1, of which some part was run. */
async function linesRun(script: string, wasRun: Uint8Array): Promise<Map<string, Set<number>>> {
  const [code, mapText] = await Promise.all([readFile(script, 'utf8'), readFile(`${script}.map`, 'utf8')]);
  const map = new SourceMap(JSON.parse(mapText) as SourceMapPayload);
  const sources = new Map<string, Set<number>>();
  let [line, column] = [0, 0];
  for (const [offset, run] of wasRun.entries()) {
    const entry = map.findEntry(line, column);
    if (run === 1 && 'originalSource' in entry) {
      const source = join(script, '..', entry.originalSource);
      const lines = sources.get(source) ?? new Set();
      sources.set(source, lines.add(entry.originalLine + 1));
    }
    [line, column] = code[offset] === '\n' ? [line + 1, 0] : [line, column + 1];
  }
  return sources;
}
