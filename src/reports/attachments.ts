import { ConfigurationError } from '../errors.js';
import { csvCell } from '../format/text.js';
import { type Answers, type Row, rowsOf } from './answers.js';
import type { ReportDefinition } from './definition.js';

/** Total size in bytes. Many mail servers refuse emails of 10 MB, and base64 adds a third. */
const MAX_BYTES = 5_000_000;

interface Attachment {
  readonly filename: string;
  readonly csv: string;
}

/**
 * The rows of queries as CSV files. A file too long for an email has only its first rows, and its
 * name says so. `of` has the answers of each project, by project id.
 */
export function attachmentsOf(
  report: ReportDefinition,
  queries: readonly string[],
  of: readonly { readonly project: string; readonly answers: Answers }[],
): Attachment[] {
  const known = report.queries.map(({ name }) => name);
  const unknown = queries.find((query) => !known.includes(query));
  if (unknown !== undefined)
    throw new ConfigurationError(
      `reports.${report.name}.attach names ${unknown}, which is not a query of the report. Its queries are ${known.join(', ')}.`,
    );
  let left = MAX_BYTES;
  return of.flatMap(({ project, answers }) =>
    queries.map((query) => {
      const rows = rowsOf(answers, query);
      const { csv, count } = csvWithin(left, rows);
      left -= Buffer.byteLength(csv);
      const part = count === rows.length ? '' : `-first-${count}-of-${rows.length}-rows`;
      const prefix = of.length === 1 ? '' : `${project.replaceAll(/[^A-Za-z0-9._-]/g, '_')}-`;
      return { filename: `${prefix}${query}${part}.csv`, csv };
    }),
  );
}

/** As many rows as fit below the header, and their number. */
function csvWithin(maxBytes: number, rows: readonly Row[]): { csv: string; count: number } {
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns.map((name) => csvCell(name, false)).join(',')];
  let size = Buffer.byteLength(lines[0] ?? '') + 1;
  for (const row of rows) {
    const line = columns.map((column) => cellOf(row[column] ?? null)).join(',');
    size += Buffer.byteLength(line) + 1;
    if (size > maxBytes) break;
    lines.push(line);
  }
  return { csv: `${lines.join('\n')}\n`, count: lines.length - 1 };
}

function cellOf(value: Row[string]): string {
  if (value === null) return '';
  if (typeof value === 'object') return csvCell(JSON.stringify(value), false);
  return csvCell(String(value), typeof value === 'number');
}
