import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseYaml, problemOf, ProblemsError } from '../config/problems.js';
import type { Audience } from '../config/recipients.js';
import { cron } from '../config/values.js';
import { codeOf, ConfigurationError } from '../errors.js';
import { ignoreMissing, isBuiltIn, readFileOnly, searchedDirs } from '../files.js';
import { inTitle } from '../format/text.js';

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]*$/, 'expected a name of lowercase letters, digits, hyphens and underscores');

const width = z.number().int().min(200).max(2000);

const pictureSettings = z.strictObject({
  /** The query whose rows it draws; by default the one of the same name. */
  query: name.optional(),
  title: z.string().min(1).optional(),
  /** In pixels. The page shows the one that fits the reader's screen. */
  widths: z.array(width).min(1).max(4).default([840, 350]),
  /**
   * Set for a picture that is also in the email: its width there, and a one-line template for its
   * alt text.
   */
  mail: z.strictObject({ width: width.max(552), alt: z.string().min(1) }).optional(),
});

/** How many rows a query returns, and whether they are shown as a table or only by a picture. */
const querySettings = z.union(
  [
    z.enum(['one', 'many']).transform((rows) => ({ rows, show: 'table' as const })),
    z.strictObject({
      rows: z.enum(['one', 'many']).default('many'),
      show: z.enum(['table', 'chart']).default('table'),
    }),
  ],
  { error: 'write one, many, or { show: chart }' },
);

const MODELS = ['weekly', 'improve'] as const;

/** The keys of `report.yaml`. Each query is a `.sql` file next to it, each picture a `.vl.json` file. */
const reportFile = z.strictObject({
  title: z.string().min(1),
  /** A one-line template over the report's model. */
  subject: z.string().min(1).default('{{project.name}}, {{plainDayRange period}}: {{report.title}}'),
  /** A one-line template: the preview text that email clients show after the subject. */
  preheader: z.string().default(''),
  /** A description of its readers. */
  audience: z.string().default(''),
  period: z.enum(['week', 'month', 'day']).default('week'),
  /** Whether it may be emailed to the recipients in the configuration. */
  mail: z.boolean().default(true),
  /** Has had no effect since 0.4.0, which sends no corrections. */
  corrections: z.boolean().optional(),
  /** A cron expression: it is emailed at the first such time after its period has ended. */
  schedule: cron.optional(),
  /** The built-in model to build from the rows; without one, the template gets the rows unchanged. */
  model: z.enum(MODELS, `there is no such model; there are ${MODELS.join(' and ')}`).optional(),
  /** Whether each query returns one row or many. By default every `.sql` file, with many rows. */
  queries: z.record(name, querySettings).optional(),
  /** By default every `.vl.json` file, with the query of the same name. */
  pictures: z.record(name, pictureSettings).optional(),
});

/** A report as its folder defines it, with its SQL and pictures read. */
export type ReportDefinition = Awaited<ReturnType<typeof readReport>>;
export type Query = ReportDefinition['queries'][number];
export type Picture = ReportDefinition['pictures'][number];

/**
 * Every report by name, and an error for each that cannot be used. A report in the workspace
 * replaces the built-in one of the same name.
 */
export async function listReports(workspaceDir?: string) {
  const reports: ReportDefinition[] = [];
  const broken: ConfigurationError[] = [];
  const folders = await reportFolders(workspaceDir);
  for (const [name, folder] of folders)
    try {
      expectOwnName(name, folder, folders);
      reports.push(await readReport(name, folder));
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      broken.push(error);
    }
  return { reports, broken };
}

/** One report by name. Problems in other reports are ignored. */
export async function findReport(name: string, workspaceDir: string | undefined): Promise<ReportDefinition> {
  const folders = await reportFolders(workspaceDir);
  const folder = folders.get(name);
  if (folder === undefined) throw noReport(name, [...folders.keys()]);
  expectOwnName(name, folder, folders);
  return readReport(name, folder);
}

/** Throws a `ConfigurationError` for a folder that is the same as another one on macOS and Windows, as are its pages. */
function expectOwnName(name: string, folder: string, folders: ReadonlyMap<string, string>): void {
  const other = [...folders.keys()].find(
    (known) => known !== name && known.toLowerCase() === name.toLowerCase(),
  );
  if (other !== undefined && !isBuiltIn(folder))
    throw new ConfigurationError(
      `The report ${name} cannot be used, because the report ${other} differs only in case: rename ${folder}.`,
    );
}

export const noReport = (name: string, names: readonly string[]): ConfigurationError =>
  new ConfigurationError(`There is no report “${name}”. Reports: ${names.join(', ')}`);

async function reportFolders(workspaceDir: string | undefined): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const dir of searchedDirs(workspaceDir)) {
    const entries = await readdir(join(dir, 'reports'), { withFileTypes: true }).catch(ignoreMissing);
    for (const entry of entries ?? [])
      if (entry.isDirectory() && !found.has(entry.name))
        found.set(entry.name, join(dir, 'reports', entry.name));
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Throws a `ConfigurationError` if an audience gets a part of a report that always covers the whole site. */
export function expectSendable(
  { name, folder, isBuiltIn, queries }: ReportDefinition,
  { where }: Pick<Audience, 'where'>,
): void {
  if (where === undefined || queries.some(({ sql }) => sql.includes('$pages'))) return;
  throw new ConfigurationError(
    isBuiltIn
      ? `reports.${name}.where: the built-in report ${name} always covers the whole site. For ${where}, start a report of your own: readership report new NAME`
      : `${folder}: an audience of this report gets only ${where}, but no query uses $pages. Add AND path GLOB $pages where they read page_views.`,
  );
}

/** Throws a `ConfigurationError` that lists every problem of the report. */
async function readReport(name: string, folder: string) {
  const file = join(folder, 'report.yaml');
  const problems: string[] = [];
  /** The parsed text of a file; undefined if it cannot be read or parsed, which is added to the problems. */
  const read = <Value>(file: string, parse: (text: string) => Value): Promise<Value | undefined> =>
    readFileOnly(file)
      .then(parse)
      .catch((error: unknown) => {
        if (error instanceof ProblemsError)
          problems.push(...error.problems.map(({ line, message }) => `${file}:${line}  ${message}`));
        else problems.push(`${file}: ${codeOf(error) === 'ENOENT' ? 'missing' : problemOf(error)}`);
        return undefined;
      });
  const unknownKey = 'unknown report setting';
  const parsed = await read(file, (text) => parseYaml(text, { path: file, schema: reportFile, unknownKey }));
  if (parsed === undefined) throw cannotUse(name, problems);

  const files = (await readdir(folder)).sort();
  const named = (ending: string): string[] =>
    files.filter((file) => file.endsWith(ending)).map((file) => file.slice(0, -ending.length));
  const { queries: listed, pictures: drawn, ...settings } = parsed.value;
  const asked = listed ?? everyOne(named('.sql'), { rows: 'many', show: 'table' } as const);
  const settingsOf = drawn ?? everyOne(named('.vl.json'), pictureSettings.parse({}));
  const queries = [];
  for (const [name, settings] of Object.entries(asked)) {
    const queryFile = join(folder, `${name}.sql`);
    const sql = await read(queryFile, (text) => text);
    if (sql !== undefined) queries.push({ ...settings, name, file: queryFile, sql });
  }
  const pictures = [];
  for (const [name, { query = name, title = inTitle(name), ...how }] of Object.entries(settingsOf)) {
    if (!Object.hasOwn(asked, query))
      problems.push(
        `${file}: pictures.${name}.query: there is no query ${query}; there are ${Object.keys(asked).join(', ')}`,
      );
    const specFile = join(folder, `${name}.vl.json`);
    const spec = await read(specFile, (text) => z.record(z.string(), z.unknown()).parse(JSON.parse(text)));
    if (spec !== undefined) pictures.push({ ...how, query, title, name, file: specFile, spec });
  }
  for (const { name, show } of queries)
    if (show === 'chart' && pictures.every(({ query }) => query !== name))
      problems.push(`${file}: queries.${name}.show: no picture shows it; write one in ${name}.vl.json`);
  const used = [...queries, ...pictures].map(({ file }) => file);
  const unused = files
    .filter((file) => /\.(?:sql|vl\.json)$/.test(file))
    .map((file) => join(folder, file))
    .filter((file) => !used.includes(file));
  if (queries.length === 0 && problems.length === 0)
    problems.push(`${folder}: no query; write one in a file such as pages.sql`);
  if (problems.length > 0) throw cannotUse(name, problems);
  return { ...settings, name, folder, isBuiltIn: isBuiltIn(folder), queries, pictures, unused };
}

const everyOne = <Value>(names: readonly string[], value: Value): Record<string, Value> =>
  Object.fromEntries(names.map((name) => [name, value]));

/** The files of a report that it does not use, one sentence each. */
export const unusedFiles = ({ unused }: ReportDefinition): string[] =>
  unused.map(
    (file) =>
      `${file} is not used: list it in report.yaml, under ${file.endsWith('.sql') ? 'queries' : 'pictures'}, or delete it.`,
  );

const cannotUse = (name: string, problems: readonly string[]): ConfigurationError =>
  new ConfigurationError(
    problems.length === 1
      ? `The report ${name} cannot be used: ${problems.join('')}`
      : `The report ${name} cannot be used, ${problems.length} problems:\n  ${problems.join('\n  ')}`,
  );
