import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import fc from 'fast-check';
import { strFromU8, unzipSync } from 'fflate';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { runSql, expectOneSelect } from '../../src/sql/answer.js';
import { type AnswerStyle, formatAnswer, type TextFormat, workbookOf } from '../../src/sql/formats.js';
import { colorsOf } from '../../src/terminal/output.js';
import { hostilePiece, tries } from '../fuzz.js';

const PLAIN: AnswerStyle = { colors: colorsOf(), width: 100, maxRows: 200, isTerminal: false };

let connection: DuckDBConnection;
beforeAll(async () => {
  connection = await (await DuckDBInstance.create(':memory:')).connect();
});

async function written(sql: string, format: TextFormat, style: Partial<AnswerStyle> = {}): Promise<string> {
  const answer = (await runSql(connection, sql)) ?? expect.fail('no statement');
  return text(formatAnswer(answer, format, { ...PLAIN, ...style }));
}

it('an error before or after the first rows fails the answer, and not the next one', async () => {
  const late = "SELECT CAST(if(i = 1000000, 'too late', '1') AS INTEGER) FROM range(2000000) AS t (i)";
  await expect(written(late, 'csv')).rejects.toThrow('too late');
  const early = "SELECT sum(CAST(i || ' early' AS INTEGER)) FROM range(2) AS t (i)";
  await expect(written(early, 'csv')).rejects.toThrow('0 early');
  expect(await written('SELECT 1 AS one', 'csv')).toBe('one\n1\n');
});

it.each(['csv', 'ndjson', 'json', 'markdown'] as const)(
  'an answer is written as %s a few rows at a time, because a string cannot hold the text of many',
  async (format) => {
    const batch = Array.from({ length: 600 }, () => ['x'.repeat(1_000)]);
    const columns = [{ name: 'text', isNumeric: false, isText: true }];
    const pieces: number[] = [];
    const answer = { columns, unseen: 0, batches: Readable.from([batch]) };
    for await (const piece of formatAnswer(answer, format, PLAIN)) pieces.push(piece.length);
    expect(pieces.reduce((sum, length) => sum + length)).toBeGreaterThan(600_000);
    expect(Math.max(...pieces)).toBeLessThan(65 * 1_100);
  },
);

it('the list of tables names each once, also those that are there as stored and as they are now', async () => {
  await connection.run(
    'CREATE TABLE jobs (id INTEGER); CREATE TEMP VIEW jobs AS SELECT 1 AS id; CREATE TABLE days (day DATE)',
  );
  expect(await written('SHOW TABLES', 'csv')).toBe('name\ndays\njobs\n');
  expect(await written(' show tables;\n', 'csv')).toBe('name\ndays\njobs\n');
  await connection.run('DROP VIEW temp.jobs; DROP TABLE jobs; DROP TABLE days');
});

it.each([
  ['-- no statement', undefined],
  ['SELECT 1; SELECT 2', 1],
  // Makes a type first, which has no result.
  ['PIVOT (SELECT 1 AS one) ON one USING count(*)', 0],
])('before the answer to %s, %s results are not shown', async (sql, unseen) => {
  const answer = await runSql(connection, sql);
  expect(answer?.unseen).toBe(unseen);
  if (answer !== undefined) await connection.run('ROLLBACK');
});

it.each([
  ['SELECT 1; DROP TABLE page_views', 'It must be a single statement'],
  ["FROM query('SELECT 1')", 'uses query'],
])('%s is refused before DuckDB writes its rows as Parquet', (sql, words) =>
  expect(expectOneSelect(connection, sql)).rejects.toThrow(words),
);

const literal = (value: string): string =>
  `('${value.replaceAll("'", "''").replaceAll('\0', "' || chr(0) || '")}')`;

const hostile = fc.array(hostilePiece, { maxLength: 6 }).map((pieces) => pieces.join(''));
/** Untrusted cells: paths, and names that a query gives to columns. */
const cell = fc
  .oneof(hostile, fc.string({ unit: 'binary', maxLength: 30 }))
  // DuckDB's package reads a text without the byte order mark that it begins with.
  .filter((text) => !text.startsWith('\ufeff'));
const rows = fc.array(fc.tuple(cell, fc.option(cell)), { minLength: 1, maxLength: 5 });
const queryOf = (values: readonly (readonly (string | null)[])[]) =>
  `SELECT * FROM (VALUES ${values.map((row) => `(${row.map((value) => (value === null ? 'NULL::VARCHAR' : literal(value))).join(', ')})`).join(', ')}) AS t (one, two)`;

// eslint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** A reader of RFC 4180, a character at a time. Either half of a line break ends a row, as in spreadsheets. */
function readCsv(csv: string): string[][] {
  const records: string[][] = [[]];
  let [field, isQuoted] = ['', false];
  for (let at = 0; at < csv.length; at++) {
    const character = csv.charAt(at);
    if (isQuoted && character === '"' && csv.charAt(at + 1) === '"') {
      field += '"';
      at++;
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /[,\r\n]/.test(character)) {
      records.at(-1)?.push(field);
      if (character !== ',') records.push([]);
      field = '';
    } else field += character;
  }
  return records.slice(0, -1);
}

describe('an answer with arbitrary cells', () => {
  it('as CSV reads back unchanged, with nothing that a spreadsheet would run', async () => {
    const property = fc.asyncProperty(rows, async (values) => {
      const [head, ...read] = readCsv(await written(queryOf(values), 'csv'));
      expect(head).toEqual(['one', 'two']);
      const bare = (row: readonly (string | null)[]) => row.map((text) => text?.replaceAll("'", '') ?? '');
      expect(read.map(bare)).toEqual(values.map(bare));
      for (const text of read.flat()) {
        // Nor for a reader that splits at semicolons or tabs, and then at every line.
        for (const part of text.split(/[;\t\r\n]/)) expect(part).not.toMatch(/^["\s]*[=+\-@]/);
      }
    });
    await fc.assert(property, { ...tries(100), examples: [[[['a\rb', null]]]] });
  });

  it('as JSON, whole or one line per row, reads back unchanged', async () => {
    const property = fc.asyncProperty(rows, async (values) => {
      const expected = values.map(([one, two]) => ({ one, two }));
      expect(JSON.parse(await written(queryOf(values), 'json'))).toEqual(expected);
      const lines = (await written(queryOf(values), 'ndjson')).trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(expected);
    });
    await fc.assert(property, tries(50));
  });

  it('as Markdown has one line per row, with two cells each, and cannot control the terminal', async () => {
    const property = fc.asyncProperty(rows, async (values) => {
      const lines = (await written(queryOf(values), 'markdown')).trimEnd().split('\n');
      expect(lines).toHaveLength(values.length + 2);
      for (const line of lines) {
        expect(line).not.toMatch(STEERING);
        expect(line.replaceAll(/\\[\\|]/g, '').split('|')).toHaveLength(4);
      }
    });
    await fc.assert(property, tries(100));
  });

  it('as a table fits the terminal, and cannot control it', async () => {
    const property = fc.asyncProperty(rows, fc.integer({ min: 30, max: 200 }), async (values, width) => {
      const table = await written(queryOf(values), 'table', { width });
      expect(table).not.toMatch(STEERING);
      const ascii = table.split('\n').filter((line) => /^[\x20-\x7e\u2500-\u257f…]*$/.test(line));
      for (const line of ascii) expect(line.length).toBeLessThanOrEqual(width);
    });
    await fc.assert(property, tries(100));
  });
});

describe('an answer on a terminal', () => {
  it.each(['table', 'csv', 'json', 'ndjson', 'markdown'] as const)(
    'as %s shows every unsafe character escaped, even in column names',
    async (format) => {
      const unsafe = String.raw`chr(27) || ']0;t' || chr(7) || chr(155) || chr(127) || chr(8238) || chr(8294)`;
      const shown = await written(`SELECT ${unsafe} AS "\u009d\u202e"`, format, { isTerminal: true });
      expect(shown).not.toMatch(STEERING);
      for (const escape of ['001b', '0007', '009b', '007f', '202e', '2066', '009d'])
        expect(shown.toLowerCase()).toContain(`\\u${escape}`);
    },
  );
});

describe('a table for people', () => {
  it('shows the first rows and counts the others, and numbers without long tails', async () => {
    const table = await written('SELECT range AS number, range / 3 AS third FROM range(1200)', 'table', {
      maxRows: 2,
    });
    expect(table).toMatch(/^ {5}1 {2}0\.3333$/m);
    expect(table).toMatch(/1,200 rows, the first 2 shown\n$/);
    expect(await written('SELECT 1 AS one', 'table')).toMatch(/1 row\n$/);
  });

  it.each([
    ['0.000123456', '0.0001235'],
    ['999.456', '999.5'],
    ['18931.43', '18931.4'],
    ['-1234567.89', '-1234567.9'],
  ])('shows %s as %s, without losing a digit before the decimal point', async (sql, text) => {
    expect(await written(`SELECT ${sql}::DOUBLE AS value`, 'table')).toMatch(new RegExp(`^ *${text}$`, 'm'));
  });

  it('narrows texts before it narrows dates and numbers', async () => {
    const query = `SELECT DATE '2026-11-18' AS day, repeat('x', 300) AS path, 123456789 AS views`;
    const table = await written(query, 'table', { width: 60 });
    expect(table).toContain('2026-11-18');
    expect(table).toContain('123456789');
    expect(table).toContain('…');
    const many = Array.from({ length: 12 }, (_, index) => `${index} + 1000000000 AS n${index}`).join(', ');
    const wide = await written(`SELECT ${many}`, 'table', { width: 100 });
    const [head = '', cells = '', note] = wide.split('\n');
    expect(head.trim().split(/ +/)).toEqual(['n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7']);
    expect(cells).toMatch(/^1000000000 .* 1000000007$/);
    expect(cells.length).toBeLessThanOrEqual(100);
    expect(note).toBe('1 row, 8 of 12 columns shown; another --format writes all');
  });
});

describe('values in JSON', () => {
  it.each([
    ['NULL', null],
    ['12', 12],
    ['9007199254740993', '9007199254740993'],
    ['1.5::DECIMAL(9, 2)', 1.5],
    ['0.12345678901234567890', '0.12345678901234567890'],
    ["'12'", '12'],
    ['[1, 2]', [1, 2]],
    ["[{'views': 12::BIGINT, 'all': 9007199254740993::HUGEINT}]", [{ views: 12, all: '9007199254740993' }]],
    ["{'a': NULL}", { a: null }],
    ["DATE '2026-11-01'", '2026-11-01'],
    ['true', true],
  ])('%s is %j', async (sql, value) => {
    expect(JSON.parse(await written(`SELECT ${sql} AS value`, 'json'))).toEqual([{ value }]);
  });
});

it('what JSON has no number for is the same word in every format', async () => {
  const sql =
    "SELECT 1e400 AS large, -1e400 AS small, 'NaN'::DOUBLE AS none, [1e400] AS list, 'infinity'::DATE AS day";
  const words = ['Infinity', '-Infinity', 'NaN', '["Infinity"]', 'infinity'];
  const [large, small, none, , day] = words;
  const row = { large, small, none, list: ['Infinity'], day };
  expect(JSON.parse(await written(sql, 'json'))).toEqual([row]);
  expect(JSON.parse(await written(sql, 'ndjson'))).toEqual(row);
  expect(readCsv(await written(sql, 'csv'))[1]).toEqual(words);
  expect(await written(sql, 'markdown')).toContain(`| ${words.join(' | ')} |`);
  expect((await written(sql, 'table')).split('\n')[1]?.trim().split(/ +/)).toEqual(words);
  const sheet = unzipSync(await workbookOf((await runSql(connection, sql)) ?? expect.fail('no statement')));
  const texts = strFromU8(sheet['xl/sharedStrings.xml'] ?? new Uint8Array());
  for (const word of words) expect(texts).toContain(`>${word}<`);
});

it('an answer without rows is a header, an empty list or nothing', async () => {
  const none = (format: TextFormat) => written('SELECT 1 AS a, 2 AS b WHERE false', format);
  expect([await none('csv'), await none('json'), await none('ndjson')]).toEqual(['a,b\n', '[]\n', '']);
});

describe('xlsx', () => {
  it('stores each value as Excel does: text that looks like a formula as text, days as days', async () => {
    const answer = await runSql(
      connection,
      `SELECT '=1+1' AS "a<b", '@x' AS at_sign, 1.50::DECIMAL(9, 2) AS n, 9007199254740993 AS large, NULL AS nothing,
        DATE '2026-11-01' AS "day", TIMESTAMP '2026-11-01 06:00:00' AS "time", DATE '1899-01-01' AS early, true AS yes,
        '2026-11-01' AS words, '_x0041_ & ' || chr(27) AS odd`,
    );
    const parts = unzipSync(await workbookOf(answer ?? expect.fail('no statement')));
    const part = (name: string) => strFromU8(parts[name] ?? new Uint8Array());
    const texts = [...part('xl/sharedStrings.xml').matchAll(/<t[^>]*>(.*?)<\/t>/gs)].map(([, text]) => text);
    const rowsIn = part('xl/worksheets/sheet1.xml').matchAll(/<row [^>]*>(.*?)<\/row>/g);
    const [heads, row, ...more] = [...rowsIn].map(([, cells = '']) =>
      [...cells.matchAll(/<c ([^>]*)>(?:<v>(.*?)<\/v>)?/g)].map(([, attributes = '', value]) =>
        attributes.includes('t="s"') ? texts[Number(value)] : Number(value),
      ),
    );
    expect(more).toEqual([]);
    expect(heads?.join(' ')).toBe('a&lt;b at_sign n large nothing day time early yes words odd');
    expect(row?.filter((value) => !Number.isNaN(value))).toEqual([
      ...['=1+1', '@x', 1.5, '9007199254740993', 46327, 46327.25, '1899-01-01', 1, '2026-11-01'],
      '_x005F_x0041_ &amp; _x001B_',
    ]);
    expect(part('xl/styles.xml')).toContain('yyyy-mm-dd hh:mm:ss');
  });

  it.each([
    ['1,048,575 rows', 1, 1_048_576, ''],
    ['16,384 columns', 16_385, 1, ''],
    ['2,000,000 cells', 10, 200_000, ''],
    ['32,767 characters', 1, 1, 'x'.repeat(32_768)],
  ])('refuses more than %s', async (limit, columns, rows, value) => {
    const batch = Array<string[]>(rows).fill([value]);
    const answer = {
      columns: Array.from({ length: columns }, () => ({ name: 'a', isNumeric: false, isText: true })),
      batches: Readable.from([batch]),
      unseen: 0,
    };
    await expect(workbookOf(answer)).rejects.toThrow(`at most ${limit}`);
  });
});
