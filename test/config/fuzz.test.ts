import fc from 'fast-check';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { loadSettings } from '../../src/config/load.js';
import { ConfigurationError } from '../../src/errors.js';
import { tries } from '../fuzz.js';
import { tempDir } from '../temp-dir.js';

const EXAMPLE = await readFile(fileURLToPath(new URL('./every-setting.yaml', import.meta.url)), 'utf8');

let directory: string;
beforeAll(async () => {
  directory = await tempDir();
});

/** The problems of a file; none when it can be used. Anything thrown but a `ConfigurationError` fails the test. */
async function problemsOf(yaml: string): Promise<{ line: number; words: string }[]> {
  await writeFile(join(directory, 'readership.yaml'), yaml);
  try {
    await loadSettings(undefined, directory);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toHaveProperty('exitCode', 2);
    const [head = '', ...list] = String(error).split('\n');
    expect(head).toMatch(list.length === 1 ? /has a problem:$/ : new RegExp(`has ${list.length} problems:$`));
    return list.map((text) => {
      const [, line, words = ''] = /^ {2}readership\.yaml:(\d+) {2}(.+)$/.exec(text) ?? [];
      expect(words, text).not.toBe('');
      return { line: Number(line), words };
    });
  }
}

/** Checks that every problem of a file names one of its lines, and contains no internal error of the library. */
async function expectProblemsWithLines(yaml: string): Promise<void> {
  const lines = yaml.split(/\r\n|\r|\n/).length;
  for (const { line, words } of await problemsOf(yaml)) {
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines);
    expect(words).not.toMatch(/undefined|\[object|at .*:\d+:\d+|TypeError|ReferenceError|parseAll/);
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

  it('is used, or each of its problems is listed with its line', async () => {
    const anyYaml = fc.oneof(words, fc.string({ unit: 'binary' }), values);
    await fc.assert(fc.asyncProperty(anyYaml, expectProblemsWithLines), tries(500));
  });

  it('that was valid before it was damaged is handled the same way', async () => {
    const lines = EXAMPLE.replaceAll(/^# (?=\S+:)/gm, '').split('\n');
    const put = fc.oneof(piece, fc.constant(''));
    const change = fc.tuple(fc.nat(lines.length - 1), fc.nat(80), fc.nat(3), put);
    const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
      const damaged = [...lines];
      for (const [index, at, width, put] of changes) {
        const line = damaged[index] ?? '';
        damaged[index] = line.slice(0, at) + put + line.slice(at + width);
      }
      await expectProblemsWithLines(damaged.join('\n'));
    });
    await fc.assert(property, tries(500));
  });

  it('has all its problems listed together, each once', async () => {
    const yaml = `
baseUrl: https://a.example
projects: [{ id: prj_1 }]
history:
  start: yesterday
  settleDays: -1
  requestsPerHour: 0
improve:
  mode: maybe
  cooldownDays: -2
  exclude: /a
schedule:
  timezone: Mars
  export: nightly
  report: 61 * * * *
reports:
  firstDayOfWeek: noday
  weekly: docs@example.com
alerts:
  to: ops
  pingUrl: ping.example.com
`;
    const expected = yaml.split('\n').flatMap((line, index) => (line.startsWith('  ') ? [index + 1] : []));
    expect((await problemsOf(yaml)).map(({ line }) => line)).toEqual(expected);
  });
});
