import { readFile } from 'node:fs/promises';
import { type DrawnLines, lineChart } from '../charts/chart.js';
import { dayColumnOf, drawableOf, linesOf } from '../charts/rows.js';
import { packageFile } from '../files.js';
import { valueText } from '../format/text.js';
import { QueryError } from '../sql/children.js';
import { type DictionaryEntry, KEYWORDS, readDictionary } from '../sql/dictionary.js';
import { literal } from '../warehouse/duckdb.js';
import type { Row } from '../warehouse/query.js';
import { LONGEST_MS } from './questions.js';
import type { SiteRequest } from './request.js';

const CUT = { maxRows: 1_000, maxCharacters: 1_000_000 };

/** SQL over the history: the answer as a table and a picture, the data dictionary, and examples. */
export async function ask(request: SiteRequest): Promise<object> {
  const { query, reader, questions, saved, project, workspace } = request;
  const [dictionary, documented, names] = await Promise.all([
    readDictionary(reader),
    questionsOfDocs(),
    saved.names(),
  ]);
  const ofProject = (question: string) =>
    workspace.projects.length > 1 ? aboutProject(question, project.id, dictionary) : question;
  const sql = await saved.sqlOf(query);
  const shown = {
    sql,
    names,
    dictionary,
    keywords: KEYWORDS.join(' '),
    examples: documented.map((example) => ({ ...example, sql: ofProject(example.sql) })),
    longestSeconds: LONGEST_MS / 1000,
    answer: null,
    failure: null,
  };
  questions.processes.prepare();
  if (sql.trim() === '') return shown;
  try {
    const { rows: answer, isCut, found, note = null } = await questions.answer(sql, request, CUT);
    const columns = Object.keys(answer[0] ?? {}).map((name) => ({
      name,
      isNumeric: answer.some((row) => typeof row[name] === 'number'),
      isGrouped: answer.some((row) => isLarge(numberIn(row, name))),
    }));
    const cells = answer.map((row) =>
      columns.map(({ name, isNumeric, isGrouped }) => ({ isNumeric, text: textOf(row[name], isGrouped) })),
    );
    return { ...shown, answer: { columns, cells, isCut, found, note, picture: chartOf(answer) } };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return { ...shown, failure: error.message };
  }
}

/** Years and the like have no commas, except in a column with numbers that need them. */
const isLarge = (value: number | null): boolean => Math.abs(value ?? 0) >= 10_000;

const textOf = (value: Row[string] = null, isGrouped = false): string =>
  typeof value === 'number'
    ? value.toLocaleString('en-US', { maximumFractionDigits: 4, useGrouping: isGrouped || isLarge(value) })
    : valueText(value);

const numberIn = (row: Row, name: string): number | null =>
  typeof row[name] === 'number' ? row[name] : null;

/** Lines if the answer has one row per day, week or month. */
function chartOf(answer: readonly Row[]): DrawnLines | null {
  const days = dayColumnOf(answer);
  const columns = drawableOf(answer);
  if (days === undefined || columns.length === 0 || answer.length < 3) return null;
  return lineChart.parse(linesOf(answer, days, { title: 'The answer', columns }));
}

/** The questions of the documentation, with their SQL. */
async function questionsOfDocs(): Promise<{ title: string; sql: string }[]> {
  const text = await readFile(packageFile('docs/questions.md'), 'utf8');
  const questions = text.matchAll(/^### (.+)\n[^]*?^```sql\n([^]+?)^```/gm);
  return [...questions].map(([, title = '', sql = '']) => ({ title, sql: sql.trim() }));
}

/** Macros read these as well, so they are always limited. */
const READ_BY_MACROS = ['page_views', 'site_days'];

/** The same question about one project: what it reads is replaced by the rows of that project. */
function aboutProject(sql: string, project: string, dictionary: readonly DictionaryEntry[]): string {
  const limited = dictionary
    .filter(({ columns }) => columns.some((column) => column.name === 'project'))
    .filter(({ name }) => READ_BY_MACROS.includes(name) || new RegExp(`\\b${name}\\b`).test(sql))
    .map(({ name }) => `  ${name} AS (FROM ${name} WHERE project = ${literal(project)})`);
  const [, rest] = /^WITH\s+([^]+)/.exec(sql) ?? [];
  return `WITH\n${limited.join(',\n')}${rest === undefined ? `\n${sql}` : `,\n  ${rest}`}`;
}
