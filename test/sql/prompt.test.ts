import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { on } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { runSql } from '../../src/sql/answer.js';
import { runPrompt } from '../../src/sql/prompt.js';
import { tries } from '../fuzz.js';

let connection: DuckDBConnection;
beforeAll(async () => {
  connection = await (await DuckDBInstance.create(':memory:')).connect();
});

/** What a prompt runs, in order, and shows for text that is typed, or arrives piece by piece, until its end. */
async function typed(
  pieces: readonly (string | Uint8Array)[],
  answer: (sql: string) => Promise<void> = () => Promise.resolve(),
) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const asked: string[] = [];
  const shown = text(output);
  const ended = runPrompt({
    input,
    output,
    connection,
    onError: (message) => output.write(`${message}\n`),
    answer: (sql) => {
      asked.push(sql);
      return answer(sql);
    },
  });
  for (const piece of pieces) input.write(piece);
  input.end();
  await ended;
  output.end();
  return { asked, shown: await shown };
}

describe('the prompt', () => {
  it('runs a statement when its semicolon ends a line, no matter how many lines it has', async () => {
    const pieces = ['-- a question;\n\n;\nSELECT 1\n', "  || 'a;\n", "b';\nSELECT 2; SELECT 3;\nSELECT 4"];
    const { asked, shown } = await typed(pieces);
    expect(asked).toEqual(["SELECT 1\n  || 'a;\nb';", 'SELECT 2; SELECT 3;']);
    expect(shown).toContain('sql> ');
  });

  it('asks for the rest of a statement', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const answer = () => Promise.resolve();
    const ended = runPrompt({ input, output, connection, onError: expect.unreachable, answer });
    input.write('SELECT 1\n');
    for await (const [shown] of on(output, 'data')) if (String(shown).includes('  -> ')) break;
    input.end();
    await ended;
  });

  it.each(['exit', '.quit', '\\q', 'EXIT'])('ends with %s, but not within a statement', async (word) => {
    expect((await typed([`SELECT 1;\n${word}\nSELECT 2;\n`])).asked).toEqual(['SELECT 1;']);
    expect((await typed([`SELECT\n${word}\n;\n`])).asked).toEqual([`SELECT\n${word}\n;`]);
  });

  it.each([
    ['.tables', /regexp_extract\(comment/],
    ['.schema site_weeks', /'site_weeks' IN/],
    [".schema o'hara;", /'o''hara' IN/],
    ['.schema', /'' IN/],
  ])('runs a query for %s, but not in the middle of a statement', async (line, sql) => {
    const { asked } = await typed([`${line}\nSELECT\n${line};\n;\n`]);
    expect(asked[0]).toMatch(sql);
    expect(asked[1]).toMatch(/^SELECT\n\./);
  });

  it.each([
    ['help', 'End a statement with a semicolon'],
    ['.import x', 'There is no command .import x: .help shows what there is.\n'],
  ])('answers %s itself', async (line, words) => {
    const { asked, shown } = await typed([`${line}\nSELECT 1;\n`]);
    expect(asked).toEqual(['SELECT 1;']);
    expect(shown).toContain(words);
  });

  it('shows an error, and continues', async () => {
    const answer = (sql: string) =>
      sql.includes('1') ? Promise.reject(new Error('no such table')) : Promise.resolve();
    const { asked, shown } = await typed(['SELECT 1;\nSELECT 2;\n'], answer);
    expect(asked).toHaveLength(2);
    expect(shown).toContain('no such table\n');
  });
});

describe('arbitrary input', () => {
  const value = fc.oneof(
    fc.constantFrom("'a;b'", "'it''s;\n'", "E'\\';\n--'", '$$;\n$$', '$x$ /* ; $$ $x$', '"a;\n"', '1.5'),
    fc
      .string({ unit: fc.constantFrom('a', ';', '\n', '-', '/', '*', '$', '"', '\\', 'é') })
      .map((body) => `'${body}'`),
  );
  const space = fc.constantFrom(' ', '\n', ' -- ;\'"\n', '/* ;\n*/', " /* /* ;\n */ ' */\n");
  const statement = fc
    .array(fc.tuple(space, value, space), { minLength: 1, maxLength: 4 })
    .map((values) => `SELECT${values.map((parts) => parts.join('')).join(',')}`);
  const ending = fc.constantFrom(';', ';\n', ';;\n', '; -- end;\n');
  const script = fc.array(fc.tuple(statement, ending), { minLength: 1, maxLength: 4 });

  it('is run as the statements it contains, whole and in order, however it arrives', async () => {
    const property = fc.asyncProperty(script, fc.integer({ min: 1, max: 30 }), async (statements, length) => {
      // Statements that end within a line are run together with the rest of the line.
      const expected: { sql: string; count: number }[] = [];
      let before = { sql: '', count: 0 };
      for (const [index, [sql, end]] of statements.entries()) {
        before = { sql: before.sql + sql + end, count: before.count + 1 };
        if (!end.endsWith('\n') && index < statements.length - 1) continue;
        expected.push({ ...before, sql: before.sql.replace(/\n$/, '') });
        before = { sql: '', count: 0 };
      }
      const whole = `${statements.flat().join('')}\n`;
      const { asked } = await typed(whole.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []);
      expect(asked).toEqual(expected.map(({ sql }) => sql));
      for (const { sql, count } of expected)
        expect((await connection.extractStatements(sql)).count).toBe(count);
    });
    await fc.assert(property, tries(100));
  });

  it('never breaks the prompt, even random bytes', async () => {
    const answer = async (sql: string) => {
      const answered = await runSql(connection, sql);
      if (answered !== undefined) for await (const batch of answered.batches) expect(batch).toBeDefined();
    };
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: 'binary', maxLength: 200 }));
    const pieces = fc.array(fc.oneof(bytes, fc.constantFrom(';\n', 'SELECT 1;\n')), { maxLength: 8 });
    const property = fc.asyncProperty(pieces, async (pieces) => {
      expect((await typed(pieces, answer)).shown).toContain('sql> ');
    });
    await fc.assert(property, tries(100));
  });
});
