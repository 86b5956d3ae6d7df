import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { standingOf } from '../../src/sql/standing.js';
import { tries } from '../fuzz.js';

describe('some SQL', () => {
  it.each([
    ['', 'blank'],
    [' \n\t', 'blank'],
    ['-- only a comment;', 'blank'],
    ['/* one; /* within */ another; */ ;', 'blank'],
    ['SELECT 1', 'open'],
    ['SELECT 1; SELECT', 'open'],
    ["SELECT 'a;", 'open'],
    ["SELECT E'\\';", 'open'],
    ['SELECT ";', 'open'],
    ['SELECT $$a;', 'open'],
    ['SELECT $tag$a;$$;', 'open'],
    ['SELECT 1 /* ;', 'open'],
    ['SELECT 1 /* /* */ ;', 'open'],
    ['SELECT 1 -- ;', 'open'],
    ['SELECT 1;', 'complete'],
    ['SELECT 1; -- done', 'complete'],
    ['SELECT 1; /* done */ ', 'complete'],
    ['SELECT 1;;', 'complete'],
    ["SELECT 'it''s;' || E'\\'' || '\\';", 'complete'],
    ['SELECT "a"";" FROM t;', 'complete'],
    ['SELECT $$a;$$ || $tag$;$$;$tag$;', 'complete'],
    ['SELECT a$b$c FROM t;', 'complete'],
    ['SELECT $1 -- the first\r;', 'complete'],
  ] as const)('%j is %s', (sql, standing) => {
    expect(standingOf(sql)).toBe(standing);
  });

  it('of a megabyte is read at once, whatever is left open in it', () => {
    for (const sql of [
      "'".repeat(1e6),
      "e'\\".repeat(3e5),
      '/*'.repeat(5e5),
      '$$'.repeat(5e5),
      'a$'.repeat(5e5),
    ])
      expect(['open', 'complete']).toContain(standingOf(`SELECT ${sql}`));
  });
});

describe('some SQL as DuckDB reads it', () => {
  let said: (sql: string) => Promise<string>;
  beforeAll(async () => {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    said = (sql) =>
      connection.extractStatements(sql).then(
        ({ count }) => `${count} statements`,
        (error: unknown) => String(error),
      );
  });

  const words = [
    ...["'", "''", '"', '""', '$$', '$a$', '$é$', '$', '$1', '--', '/*', '*/', '\\', "E'", "x'"],
    ...[';', '\n', '\r', ' ', '\t', ',', 'a', 'é', '1', 'SELECT 1', ' SELECT ', "'a;b'"],
  ];
  const anySql = fc.array(fc.constantFrom(...words), { maxLength: 14 }).map((parts) => parts.join(''));

  it('is open whenever it says that something is not closed, and never when it has whole statements in it', async () => {
    const property = fc.asyncProperty(anySql, fc.constantFrom('', 'SELECT '), async (text, start) => {
      const sql = start + text;
      const words = await said(sql);
      if (words.includes('unterminated')) expect(standingOf(sql)).toBe('open');
      // Closed with a semicolon, whatever it finds to be whole is complete.
      if (words.endsWith('statements')) expect(standingOf(`${sql}\n;`)).toBe('complete');
    });
    await fc.assert(property, tries(2_000));
  });

  it('is blank exactly when it finds no statement in it', async () => {
    // DuckDB itself takes a lone letter that is not ASCII for nothing.
    const property = fc.asyncProperty(
      anySql.filter((sql) => !sql.includes('é')),
      async (sql) => {
        expect(standingOf(sql) === 'blank').toBe((await said(sql)).includes('Error in native callback'));
      },
    );
    await fc.assert(property, tries(2_000));
  });
});
