import {
  BIGINT,
  DATE,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  INTEGER,
} from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { type Day, day, daysBetween } from '../day.js';
import { pageOf } from '../page.js';
import { COUNTS, type DayCounts, type NewIds, type Restatement, type StoredDay } from './days.js';
import { dateOf, literal, type Parameters, toDuckDB } from './duckdb.js';

/** A day that was read. */
export interface LoadedDay {
  readonly project: string;
  readonly stored: StoredDay;
  /** Its rows; undefined if the stored ones are kept. */
  readonly counts: DayCounts | undefined;
  /** Whether the history does not have it yet. */
  readonly isNew: boolean;
}

/** A day to store in place of what is stored of it; without counts, the stored ones are kept. */
export interface DayToStore {
  readonly project: string;
  readonly stored: StoredDay;
  readonly counts?: DayCounts | undefined;
  readonly restatement?: Restatement | undefined;
}

/** What the next version of the history has and the last one has not. */
interface Changes extends NewIds {
  readonly days: readonly LoadedDay[];
  readonly restatements: readonly Restatement[];
}

/** Makes changes in the current database, inside a transaction: each day replaces what was stored of it. */
export async function applyChanges(connection: DuckDBConnection, changes: Changes): Promise<void> {
  const { days, restatements, projects, newProjects, newPaths } = changes;
  const idOf = (project: string): number => {
    const id = projects.get(project);
    if (id === undefined) throw new Error(`the project ${project} has no id`);
    return id;
  };
  for (const project of new Set(days.map((one) => one.project))) {
    const known = days.filter((one) => one.project === project && !one.isNew);
    const replaced = known.filter(({ counts }) => counts !== undefined);
    await deleteDays(connection, 'days', `project = ${literal(project)}`, known);
    await deleteDays(connection, 'internal.counts', `project_id = ${projects.get(project)}`, replaced);
  }
  await appendTo(connection, 'internal', 'projects', (appender) => {
    for (const project of newProjects) appendRow(appender, [idOf(project), project]);
  });
  await appendTo(connection, 'internal', 'paths', (appender) => {
    // There may be hundreds of thousands of them: nothing looks for their types.
    for (const { id, projectId, path } of newPaths) {
      appender.appendInteger(id);
      appender.appendInteger(projectId);
      appender.appendVarchar(path);
      appender.appendVarchar(pageOf(path));
      appender.endRow();
    }
  });
  await appendTo(connection, 'internal', 'counts', (appender) => {
    const counted = days.flatMap(({ project, stored: { day }, counts }) =>
      counts === undefined ? [] : { projectId: idOf(project), day, counts },
    );
    appendCounts(appender, counted);
  });
  await appendTo(connection, 'main', 'days', (appender) => {
    for (const { project, stored } of days) appendRow(appender, dayValues(project, stored));
  });
  await appendTo(connection, 'main', 'restatements', (appender) => {
    for (const one of restatements) appendRow(appender, restatementValues(one));
  });
}

async function deleteDays(
  connection: DuckDBConnection,
  table: string,
  ofProject: string,
  days: readonly LoadedDay[],
): Promise<void> {
  const list = days.map(({ stored }) => stored.day).sort();
  const [first, last] = [list[0], list.at(-1)];
  if (first === undefined || last === undefined) return;
  // With the bounds, DuckDB reads only the rows between them.
  const between = `day BETWEEN '${first}' AND '${last}' AND day IN (${list.map(quoted).join(', ')})`;
  await connection.run(`DELETE FROM ${table} WHERE ${ofProject} AND ${between}`);
}

const quoted = (day: Day): string => `'${day}'`;

/** An appender that is not closed before the end of a transaction would write its rows after it. */
async function appendTo(
  connection: DuckDBConnection,
  schema: string,
  table: string,
  append: (appender: DuckDBAppender) => void,
): Promise<void> {
  const appender = await connection.createAppender(table, schema);
  try {
    append(appender);
  } catch (error) {
    appender.clear();
    throw error;
  } finally {
    appender.closeSync();
  }
}

function appendRow(appender: DuckDBAppender, values: readonly Parameters[string][]): void {
  for (const value of values) appender.appendValue(toDuckDB(value));
  appender.endRow();
}

const dayValues = (project: string, stored: StoredDay): Parameters[string][] => [
  project,
  dateOf(stored.day),
  stored.state,
  stored.first_loaded_at,
  stored.loaded_at,
  stored.checked_at,
  stored.human,
  stored.ai,
  stored.total,
  stored.pages,
  stored.unattributed_human,
  stored.unattributed_ai,
  stored.unattributed_total,
  stored.problem,
  stored.nights_in_doubt,
];

const restatementValues = (one: Restatement): Parameters[string][] => [
  one.project,
  dateOf(one.day),
  one.at,
  one.checkedBefore,
  one.before.human,
  one.after.human,
  one.before.ai,
  one.after.ai,
  one.before.total,
  one.after.total,
  one.pagesChanged,
];

/** The most rows that a DuckDB chunk holds. */
const CHUNK_ROWS = 2048;

const EPOCH = day('1970-01-01');

/** The rows of a day, with its project as a number. */
interface CountedDay {
  readonly projectId: number;
  readonly day: Day;
  readonly counts: DayCounts;
}

/** Appends the rows of days to `internal.counts`. */
function appendCounts(appender: DuckDBAppender, days: Iterable<CountedDay>): void {
  // Only garbage collection gives back the memory of a chunk, so there is one.
  const chunk = DuckDBDataChunk.create([INTEGER, DATE, INTEGER, BIGINT, BIGINT, BIGINT]);
  for (const { projectId, day: on, counts } of days) {
    const date = daysBetween(EPOCH, on);
    for (let from = 0; from < counts.ids.length; from += CHUNK_ROWS) {
      const ids = counts.ids.slice(from, from + CHUNK_ROWS);
      chunk.reset();
      chunk.rowCount = ids.length;
      const columns = [
        new Int32Array(ids.length).fill(projectId),
        new Int32Array(ids.length).fill(date),
        ids,
        ...COUNTS.map((name) => wide(counts[name].subarray(from, from + CHUNK_ROWS))),
      ];
      columns.forEach((column, index) => {
        const vector = duckdb.data_chunk_get_vector(chunk.chunk, index);
        duckdb.copy_data_to_vector(vector, 0, column.buffer, 0, column.byteLength);
      });
      appender.appendDataChunk(chunk);
    }
  }
}

/** Whole numbers below 2⁵³ as 64-bit integers on a little-endian machine, which are the only ones that DuckDB runs on. */
function wide(numbers: Float64Array): Uint32Array<ArrayBuffer> {
  const halves = new Uint32Array(2 * numbers.length);
  for (let index = 0; index < numbers.length; index++) {
    const number = numbers[index] ?? 0;
    halves[2 * index] = number;
    if (number >= 2 ** 32) halves[2 * index + 1] = number / 2 ** 32;
  }
  return halves;
}

/** What was read and is not written yet: each day as it was read last, and how many rows these have. */
export class WaitingDays {
  constructor(
    readonly days = new Map<string, LoadedDay>(),
    readonly restatements: Restatement[] = [],
    public rows = 0,
  ) {}

  /** The same, but for days that were read again later. */
  with(later: WaitingDays): WaitingDays {
    const days = new Map([...this.days, ...later.days]);
    return new WaitingDays(days, [...this.restatements, ...later.restatements], this.rows + later.rows);
  }
}
