import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { Reader } from '../../src/warehouse/query.js';
import { liveWarehouse } from '../open-warehouse.js';

const DICTIONARY = join(import.meta.dirname, '../../docs/data.md');

const INTRODUCTION = `# Data dictionary

Everything in the published history, \`data/history.duckdb\`, in the words of its own comments; \`FROM duckdb_columns() SELECT table_name, column_name, comment\`
shows them in the database. Days and moments are UTC. A day that was never loaded has no row: missing is never shown as zero.

[questions.md](questions.md) has twenty questions with their SQL, [readers.md](readers.md) opens the file from other tools. This page is written by
\`npx vitest run dictionary -u\`, and a test fails when it is not current. It leaves out one table, \`schema_version\`, the bookkeeping of upgrades.`;

const relationRow = z.object({ name: z.string(), comment: z.string() });
const columnRow = z.object({ column: z.string(), type: z.string(), comment: z.string() });
const macroRow = z.object({ name: z.string(), parameters: z.array(z.string()), comment: z.string() });
const resultRow = z.object({ column_name: z.string(), column_type: z.string() });

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

async function relations(reader: Reader, kind: 'table' | 'view'): Promise<string> {
  const sections: string[] = [];
  const found = await reader.query(
    `SELECT ${kind}_name AS name, comment FROM duckdb_${kind}s() WHERE NOT internal AND ${kind}_name <> 'schema_version' ORDER BY name`,
    relationRow,
  );
  for (const { name, comment } of found) {
    const columns = await reader.query(
      'SELECT column_name AS column, data_type AS type, comment FROM duckdb_columns() WHERE table_name = $name ORDER BY column_index',
      columnRow,
      { name },
    );
    const lines = columns.map(
      ({ column, type, comment }) => `| \`${column}\` | ${cell(type)} | ${cell(comment)} |`,
    );
    sections.push(
      `### ${name}\n\n${comment}\n\n| column | type | meaning |\n| --- | --- | --- |\n${lines.join('\n')}`,
    );
  }
  return sections.join('\n\n');
}

/** A macro's columns come from the example in its comment, so that each has one, and it runs. */
async function macros(reader: Reader): Promise<string> {
  const sections: string[] = [];
  const found = await reader.query(
    "SELECT function_name AS name, parameters, comment FROM duckdb_functions() WHERE NOT internal AND function_type = 'table_macro' ORDER BY name",
    macroRow,
  );
  const explained = new Set(
    (
      await reader.query(
        "FROM duckdb_columns() SELECT column_name WHERE table_name IN ('page_views', 'site_days')",
        z.object({ column_name: z.string() }),
      )
    ).map((row) => row.column_name),
  );
  for (const { name, parameters, comment } of found) {
    const example = new RegExp(`FROM ${name}\\([^)]*\\)`).exec(comment)?.[0] ?? 'no example in its comment';
    const columns = await reader.query(`DESCRIBE ${example}`, resultRow);
    for (const { column_name: column } of columns)
      expect(
        explained.has(column) || new RegExp(`\\b${column}\\b`).test(comment),
        `${name}.${column} is explained`,
      ).toBe(true);
    const given = columns.map(({ column_name: column, column_type: type }) => `\`${column}\` ${cell(type)}`);
    sections.push(
      `### ${name}(${parameters.join(', ')})\n\n${comment.replace(example, `\`${example}\``)}\n\nGives ${given.join(', ')}.`,
    );
  }
  return sections.join('\n\n');
}

it('docs/data.md is what the comments in the database say: npx vitest run dictionary -u', async () => {
  const warehouse = await liveWarehouse();
  const parts = [
    INTRODUCTION,
    '## Views, to ask first',
    await relations(warehouse, 'view'),
    '## Macros, asked as `FROM name(…)`',
    await macros(warehouse),
    '## Tables',
    await relations(warehouse, 'table'),
  ];
  const page = await format(parts.join('\n\n'), { ...(await resolveConfig(DICTIONARY)), parser: 'markdown' });
  expect(page).toContain('### page_views');
  expect(page).toContain('One row per');
  await expect(page).toMatchFileSnapshot(DICTIONARY);
});
