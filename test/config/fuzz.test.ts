import fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { parseYaml, ProblemsError } from '../../src/config/problems.js';
import { settingsSchema } from '../../src/config/schema.js';
import { tries } from '../fuzz.js';

const EXAMPLE = await readFile(fileURLToPath(new URL('./every-setting.yaml', import.meta.url)), 'utf8');

/** The problems of a file; none when it can be used. Anything thrown but a `ProblemsError` fails the test. */
function problemsOf(yaml: string): ProblemsError['problems'] {
  try {
    parseYaml(yaml, 'readership.yaml', settingsSchema);
    return [];
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
}

/** Checks that every problem of a file names one of its lines, and contains no internal error of the library. */
function expectProblemsWithLines(yaml: string): void {
  const lines = yaml.split(/\r\n|\r|\n/).length;
  for (const { line, message } of problemsOf(yaml)) {
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines);
    expect(message).not.toBe('');
    expect(message).not.toMatch(/undefined|\[object|at .*:\d+:\d+|TypeError|ReferenceError|parseAll/);
  }
}

describe('any configuration file', () => {
  const tokens =
    'baseUrl projects id history start improve exclude mail __proto__ constructor : - ? | >- [ ] { } , " \' # &a *a ' +
    '<<: !!binary !!set !!float !x --- ... %YAML @ ` \\ https://a.example prj_1 1 .nan .inf 0x10 2026-01-01 auto null ~ true 日';
  const piece = fc.oneof(
    fc.tuple(fc.constantFrom(...tokens.split(' ')), fc.constantFrom('', ' ')).map((parts) => parts.join('')),
    fc.constantFrom('\n', '\n  ', '\n    ', '\t', '\r\n', '\0', '\ufeff', '%YAML 1.1'),
  );
  const words = fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join(''));
  const values = fc.jsonValue().map((value) => stringify(value));

  it('is used, or each of its problems is listed with its line', () => {
    const anyYaml = fc.oneof(words, fc.string({ unit: 'binary' }), values);
    fc.assert(fc.property(anyYaml, expectProblemsWithLines), tries(500));
  });

  it('that was valid before it was damaged is handled the same way', () => {
    const lines = EXAMPLE.replaceAll(/^# (?=\S+:)/gm, '').split('\n');
    const put = fc.oneof(piece, fc.constant(''));
    const change = fc.tuple(fc.nat(lines.length - 1), fc.nat(80), fc.nat(3), put);
    const property = fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      const damaged = [...lines];
      for (const [index, at, width, put] of changes) {
        const line = damaged[index] ?? '';
        damaged[index] = line.slice(0, at) + put + line.slice(at + width);
      }
      expectProblemsWithLines(damaged.join('\n'));
    });
    fc.assert(property, tries(300));
  });
});
