import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseYaml, problemOf, ProblemsError } from '../config/problems.js';
import type { MailAudience } from '../config/recipients.js';
import { cron } from '../config/values.js';
import { codeOf, ConfigurationError } from '../errors.js';
import { ignoreMissing, isBuiltIn, readFileOnly, searchedDirs } from '../files.js';
import { inTitle } from '../format/text.js';

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]*$/, 'expected a name of lowercase letters, digits, hyphens and underscores');

const SHOWN = ['lines', 'bars', 'facts', 'table'] as const;
type ColumnForm = (typeof SHOWN)[number];

/** What to show: one of them, or a chart with its table. */
const shown = z.union([
  z.enum(SHOWN).transform((one): ColumnForm[] => [one]),
  z
    .array(z.enum(SHOWN))
    .refine(
      (all) => /^(?:bars|lines),table$/.test(all.toSorted().join()),
      'write [lines, table] or [bars, table]',
    ),
]);

const rowCount = z.enum(['one', 'many']);

const querySettings = z
  .union(
    [
      rowCount.transform((rows) => ({ rows, show: undefined, columns: undefined, title: undefined })),
      z.strictObject({
        rows: rowCount.optional(),
        show: shown.optional(),
        /** The columns of a chart, of a table or of facts. */
        columns: z.array(z.string()).min(1).optional(),
        title: z.string().min(1).optional(),
      }),
    ],
    {
      error:
        'write one, many, or what to show: { show: lines }, with lines, bars, facts, table, [lines, table] or [bars, table]',
    },
  )
  .transform(({ rows, show = ['table'], columns, title }) => {
    // Facts are the values of one row.
    const isOne = rows === 'one' || show.includes('facts');
    const shown: readonly ColumnForm[] = isOne ? ['facts'] : show;
    return { rows: isOne ? ('one' as const) : ('many' as const), show: shown, columns, title };
  });

const MODELS = ['weekly', 'improve'] as const;

/** The keys of `report.yaml`. Each query is a `.sql` file next to it. */
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
  /** A cron expression: it is emailed at the first such time after its period has ended. */
  schedule: cron.optional(),
  /** The built-in model to build from the rows; without one, the template gets the rows unchanged. */
  model: z.enum(MODELS, `there is no such model; there are ${MODELS.join(' and ')}`).optional(),
  /** What is shown of each query. By default every `.sql` file as a table. */
  queries: z.record(name, querySettings).optional(),
});

/** A report as its folder defines it, with its SQL read. */
export type ReportDefinition = Awaited<ReturnType<typeof readReport>>;
export type Query = ReportDefinition['queries'][number];

/** Whether a query is shown as lines, bars, facts or a table. */
export const shows = ({ show }: Pick<Query, 'show'>, part: ColumnForm): boolean => show.includes(part);

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
  return readReport(name, folder);
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
  { where }: Pick<MailAudience, 'where'>,
): void {
  if (where === undefined || queries.some(({ sql }) => sql.includes('$pages'))) return;
  throw new ConfigurationError(
    isBuiltIn
      ? `reports.${name}.where: the built-in report ${name} always covers the whole site. For ${where}, start a report of your own: readership report new NAME`
      : `${folder}: an audience of this report gets only ${where}, but no query uses $pages. Add AND page GLOB $pages where they read page_views.`,
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
  const parsed = await read(file, (text) => parseYaml(text, file, reportFile));
  if (parsed === undefined) throw cannotUse(name, problems);

  const sqlFiles = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
  const { queries: listed, ...settings } = parsed;
  const asTable = querySettings.parse('many');
  const asked = listed ?? Object.fromEntries(sqlFiles.map((file) => [file.slice(0, -4), asTable]));
  const queries = [];
  for (const [name, { rows, show, columns, title = inTitle(name) }] of Object.entries(asked)) {
    const queryFile = join(folder, `${name}.sql`);
    const sql = await read(queryFile, (text) => text);
    if (sql !== undefined) queries.push({ name, title, rows, show, columns, file: queryFile, sql });
  }
  if (queries.length === 0 && problems.length === 0)
    problems.push(`${folder}: no query; write one in a file such as pages.sql`);
  if (problems.length > 0) throw cannotUse(name, problems);
  return { ...settings, name, folder, isBuiltIn: isBuiltIn(folder), queries };
}

const cannotUse = (name: string, problems: readonly string[]): ConfigurationError =>
  new ConfigurationError(
    problems.length === 1
      ? `The report ${name} cannot be used: ${problems.join('')}`
      : `The report ${name} cannot be used, ${problems.length} problems:\n  ${problems.join('\n  ')}`,
  );
