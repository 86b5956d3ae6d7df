import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { alignedLines, plainLines } from '../../src/terminal/table.js';
import { openLog } from '../../src/print/log.js';
import { loadScreen, Output, wrapped as wrappedOn } from '../../src/terminal/output.js';
import { openInBrowser } from '../../src/terminal/person.js';
import { textOf } from '../streams.js';
import { tempDir } from '../temp-dir.js';

const HOSTILE = '/a\u001b[31mred\u001b[0m\u001b]0;title\u0007\u009b2J\u007f\u202e\u2066\u200b\r\t/end';
const ESCAPED = String.raw`/a\u001b[31mred\u001b[0m\u001b]0;title\u0007\u009b2J\u007f\u202e\u2066\u200b\u000d\u0009/end`;

const screen = await loadScreen();
const wrapped = (text: string, width: number): string => wrappedOn(text, width, screen);

/** What was written to one of the streams: both are terminals, or both are pipes. */
async function written(isTTY: boolean, work: (output: Output) => Promise<void> | void) {
  const stream = () => Object.assign(new PassThrough(), { isTTY, columns: 400 });
  const [out, err] = [stream(), stream()];
  await work(new Output(out, err, true, screen));
  return { out: textOf(out), err: textOf(err) };
}

const everyWay = (output: Output) => {
  output.data(HOSTILE);
  output.words(HOSTILE);
  output.write(`${HOSTILE}\n`);
  output.note(HOSTILE);
};

describe('untrusted text', () => {
  it('is escaped on a terminal, whichever way it is written', async () => {
    const { out, err } = await written(true, everyWay);
    expect(out).toBe(`${ESCAPED}\n`.repeat(3));
    expect(err).toContain(`${ESCAPED}\n`);
    expect(err).not.toContain('\u001b[31m');
  });

  it('is written to a pipe unchanged', async () => {
    const { out, err } = await written(false, everyWay);
    expect(out).toBe(`${HOSTILE}\n`.repeat(3));
    expect(err).toBe(`${HOSTILE}\n`);
  });

  it('cannot set colors: our own survive, those in the text are escaped', async () => {
    const { out } = await written(true, (output) => {
      output.data(output.colors.red(HOSTILE));
    });
    expect(out).toBe(`\u001b[31m${ESCAPED}\u001b[39m\n`);
  });

  it('repeats in a log how the command was invoked', async () => {
    const { out } = await written(false, async (output) => {
      output.repeatOptions({ config: '"quoted".yaml' });
      (await openLog(output)).warn({ error: 'See: readership status' }, 'To retry: readership export');
    });
    expect(JSON.parse(out)).toMatchObject({
      error: `See: readership status --config '"quoted".yaml'`,
      msg: `To retry: readership export --config '"quoted".yaml'`,
    });
  });

  it('is escaped in redrawn progress, and in the log', async () => {
    const { out, err } = await written(true, async (output) => {
      output.live(HOSTILE);
      (await openLog(output)).warn({ path: HOSTILE }, HOSTILE);
    });
    expect(err).toContain(ESCAPED);
    expect(out).toContain(ESCAPED);
    /* eslint-disable no-control-regex */
    expect(out.replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/,
    );
    expect(out).toMatch(/WARN/);
  });
});

describe('lines for people on a narrow terminal', () => {
  it('are broken between words, and continue under the start of their text', () => {
    expect(wrapped('  why   number 1 in sustained reading', 24)).toBe(
      '  why   number 1 in\n        sustained\n        reading',
    );
    expect(wrapped('  Find the source file of that page.', 24)).toBe(
      '  Find the source file\n  of that page.',
    );
  });

  it('are unchanged if they fit, or if they are one long address', () => {
    const address = `  pull request  https://code.example.com/${'a'.repeat(60)}`;
    expect(wrapped(`short\n\n${address}`, 60)).toBe(`short\n\n${address}`);
  });

  it('keep every word and color', () => {
    const painted = '  state  \u001B[32mcompleted without any change at all\u001B[39m';
    const plain = stripVTControlCharacters(wrapped(painted, 30)).split(/\s+/).join(' ').trim();
    expect(plain).toBe('state completed without any change at all');
  });

  it('are not broken if the column before them takes more than half of the terminal', () => {
    const line = `${'name '.repeat(8)}  some words that would have hardly any room`;
    expect(wrapped(line, 60)).toBe(line);
  });
});

it('a table is aligned by the width of its characters, and cut between them', () => {
  const columns = [
    { head: 'path', align: 'left', shrinks: true },
    { head: 'views', align: 'right' },
  ] as const;
  const rows = [
    ['/日本', '7'],
    ['/a', '12'],
  ];
  expect(alignedLines(columns, rows, 80)).toEqual(['path   views', '/日本      7', '/a        12']);
  const long = `/${'a'.repeat(2_000)}`;
  const ofLong = [
    [long, '7'],
    ['/b', '12'],
  ];
  expect(plainLines(columns, ofLong)).toEqual(['path  views', `${long}  7`, '/b  12']);
  const [path, views] = columns;
  expect(alignedLines([{ ...path, most: 9 }, views], ofLong, Infinity)).toEqual([
    'path       views',
    '/aaa…aaaa      7',
    '/b            12',
  ]);
  expect(alignedLines(columns, [['/日本日本日本日本日本', '7']], 17)[1]).toBe('/日本…日本      7');
  expect(alignedLines(columns, [['/abcdefghijklmnopqrstuvwxyz', '7']], 17)[1]).toBe('/abcd…wxyz      7');
});

it('JSON has camelCase keys at every depth, and values as they are', async () => {
  const { out } = await written(false, (output) => {
    output.json([{ started_at: new Date(0), job: { pr_link: null }, weeks: [{ ai_per_human: 0.5 }] }]);
  });
  expect(JSON.parse(out)).toEqual([
    { startedAt: '1970-01-01T00:00:00.000Z', job: { prLink: null }, weeks: [{ aiPerHuman: 0.5 }] },
  ]);
});

it.skipIf(process.platform !== 'linux').each([
  ['cannot open it', 'exit 3', 'xdg-open could not open the browser. Open this yourself: page.html\n'],
  ['is not there', undefined, 'Cannot open the browser without xdg-open. Open this yourself: page.html\n'],
])('--open says so when the opener %s', async (_, script, words) => {
  const directory = await tempDir();
  if (script !== undefined) {
    await writeFile(join(directory, 'xdg-open'), `#!/bin/sh\n${script}\n`);
    await chmod(join(directory, 'xdg-open'), 0o755);
  }
  const notes = new PassThrough({ encoding: 'utf8' });
  openInBrowser('page.html', { PATH: directory }, new Output(new PassThrough(), notes, false));
  const [said] = (await notes.take(1).toArray()) as string[];
  expect(said).toBe(words);
});
