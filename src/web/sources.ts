import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import { type Parameters, type Reader, readSql, type Row, rowSchema } from '../warehouse/query.js';
import { WebHistories } from './history.js';
import { Proposals } from './proposals.js';
import { Questions, SavedQuestions } from './questions.js';

/** What pages and tools answer from. */
export type Sources = ReturnType<typeof openSources>;

export const openSources = (workspace: Workspace, options: WorkspaceOptions, runtime: Runtime) => ({
  workspace,
  runtime,
  histories: new WebHistories(workspace, runtime.signal),
  questions: new Questions(workspace, options, runtime),
  saved: new SavedQuestions(workspace),
  proposals: new Proposals(workspace),
});

/** The rows of a query in `queries/`. */
export const rowsOf = (reader: Reader, name: string, parameters: Parameters): Promise<Row[]> =>
  reader.query(queryNamed(name), rowSchema, parameters);

export const queryNamed = (name: string): string => readSql(import.meta.url, `queries/${name}.sql`);

/** Ends the queries and closes the histories. */
export async function closeSources({ questions, histories }: Sources): Promise<void> {
  await questions.close();
  histories.close();
}
