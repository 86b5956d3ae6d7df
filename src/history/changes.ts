import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api';
import type { Day } from '../day.js';
import { pageOf } from '../page.js';
import { appendCounts } from './counts.js';
import type { DayCounts } from './day-counts.js';
import type { Restatement, StoredDay } from './days.js';
import { literal } from './duckdb.js';
import { dateOf, type Parameters, toDuckDB } from './query.js';

/** A day that was read. */
export interface LoadedDay {
  readonly project: string;
  readonly stored: StoredDay;
  /** Its rows; undefined if the stored ones are kept. */
  readonly counts: DayCounts | undefined;
  /** Whether the history does not have it yet. */
  readonly isNew: boolean;
}

/** A path that the history does not have yet. */
export interface NewPath {
  readonly id: number;
  readonly projectId: number;
  readonly path: string;
}

/** What the next version of the history has and the last one has not. */
export interface Changes {
  readonly days: readonly LoadedDay[];
  readonly restatements: readonly Restatement[];
  readonly projects: ReadonlyMap<string, number>;
  readonly newProjects: readonly string[];
  readonly newPaths: readonly NewPath[];
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
