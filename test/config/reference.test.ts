import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { loadSettings } from '../../src/config/load.js';
import { jsonSchemaOf } from '../../src/config/problems.js';
import { settingsSchema } from '../../src/config/schema.js';

const PAGE = fileURLToPath(new URL('../../docs/configuration.md', import.meta.url));
const TEMPLATE = fileURLToPath(new URL('./every-setting.yaml', import.meta.url));

type Schema = z.core.JSONSchema.BaseSchema;
const isSchema = (value: unknown): value is Schema => typeof value === 'object' && !Array.isArray(value);

/** Every setting of a schema that holds a value, by its path. */
function* settingsIn(schema: Schema, path: string): Generator<[string, Schema]> {
  const { properties, items, additionalProperties: others } = schema;
  const of = (key: string) => (path === '' ? key : `${path}.${key}`);
  if (properties !== undefined)
    for (const [key, inner] of Object.entries(properties))
      if (isSchema(inner)) yield* settingsIn(inner, of(key));
  // An audience, or a list of them.
  const named = isSchema(others) ? (others.anyOf?.[0] ?? others) : undefined;
  if (named?.properties !== undefined || named?.type === 'string') yield* settingsIn(named, of('NAME'));
  if (isSchema(items) && items.properties !== undefined) yield* settingsIn(items, `${path}[]`);
  else if (properties === undefined && others === undefined) yield [path, schema];
}

/** What may be written. */
function typeOf({ type, enum: names, anyOf, const: one, minimum, maximum, format }: Schema): string {
  if (names !== undefined) return names.map((name) => `\`${String(name)}\``).join(', ');
  if (one !== undefined) return `\`${String(one)}\``;
  if (anyOf !== undefined) return anyOf.filter(isSchema).map(typeOf).join(' or ');
  if (type === 'array') return 'list';
  if (type === 'boolean') return '`true`, `false`';
  if (type === 'integer' || type === 'number') {
    const most = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum}`;
    return `${type === 'integer' ? 'whole number' : 'number'}${minimum === undefined ? most : `, ${minimum}${most || ' or more'}`}`;
  }
  return format === 'uri' ? 'URL' : 'text';
}

const valueAt = (root: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce((value, key) => z.record(z.string(), z.unknown()).safeParse(value).data?.[key], root);

const ROW =
  /^\| `(?<name>[^`]+)` +\| (?<type>.*?) +\| (?<by>.*?) +\| (?<meaning>.*?) +\| (?<change>.*?) +\|$/gm;

it('docs/configuration.md has every setting, with its type and default from the schema, and who changes it when', async () => {
  const page = await readFile(PAGE, 'utf8');
  const template: unknown = parse(await readFile(TEMPLATE, 'utf8'));
  const expected = [...settingsIn(jsonSchemaOf(settingsSchema), '')].map(([name, schema]) => {
    const written = valueAt(template, name) ?? schema.default;
    const shown =
      written === undefined ? '' : `\`${typeof written === 'string' ? written : JSON.stringify(written)}\``;
    const isDefault = name !== 'baseUrl' && shown !== '';
    return `${name}: ${typeOf(schema)}; ${isDefault ? shown : ''}`;
  });
  const rows = [...page.matchAll(ROW)].map(({ groups = {} }) => groups);
  const documented = rows.map(({ name = '', type = '', by = '' }) => `${name}: ${type}; ${by}`);
  expect(documented.sort()).toEqual(expected.sort());
  for (const { name, meaning, change } of rows) {
    expect(meaning, name).toMatch(/^[A-Z`].{10,}\.$/);
    expect(change, name).toMatch(/^(Operator|Docs lead|Analyst|Everyone|Developer)\S* .{5,}\.$/);
  }
});

it('the file with every setting is valid, and has the actual defaults', async () => {
  const { settings } = await loadSettings(TEMPLATE, '');
  const { baseUrl, projects, dataDir } = settings;
  expect(settings).toEqual({ ...settingsSchema.parse({ baseUrl, projects }), dataDir });
});
