import { HTTPException } from 'hono/http-exception';
import type { Runtime, Workspace } from '../app/workspace.js';
import { readSql } from '../columns.js';
import { type Parameters, type Row, rowSchema } from '../history/duckdb.js';
import type { Visitor } from './access.js';
import { type Asker, type HistoryReader, WebHistory } from './history.js';
import { Proposals } from './proposals.js';
import { listOf, pageIn, parseQuery } from './query.js';
import { type Range, rangeOf } from './range.js';

/** What pages and tools answer from. */
export type Sources = ReturnType<typeof openSources>;

export const openSources = (workspace: Workspace, runtime: Runtime) => ({
  workspace,
  runtime,
  history: new WebHistory(workspace),
  proposals: new Proposals(workspace),
});

/** The rows of a query in `queries/`. */
export const rowsOf = (reader: HistoryReader, name: string, parameters: Parameters): Promise<Row[]> =>
  reader.query(readSql(import.meta.url, `queries/${name}.sql`), rowSchema, parameters);

/** Who requests a page. */
export type Visit = Visitor & Asker;

/** A request about a project, with what most pages need to answer it. */
export type SiteRequest = Awaited<ReturnType<typeof requestOf>>;

/** A request about the days of a project. */
export type PageRequest = SiteRequest & { readonly range: Range };

/** Throws a `ConfigurationError` or an `HTTPException` for an address that no page can be shown for. */
export const requestOf = async (
  { searchParams }: URL,
  visit: Visit,
  reader: HistoryReader,
  { sending, sources }: { readonly sending: { readonly isUnderWay: boolean }; readonly sources: Sources },
) => ({
  ...sources,
  ...visit,
  isSending: sending.isUnderWay,
  ...(await questionOf(searchParams, reader, sources)),
});

/** What is asked about a project. Throws a `ConfigurationError` or an `HTTPException` for parameters without an answer. */
export async function questionOf(
  parameters: URLSearchParams,
  reader: HistoryReader,
  { runtime, workspace }: Pick<Sources, 'runtime' | 'workspace'>,
) {
  const query = parseQuery(parameters);
  const project = workspace.projects.find(({ id }) => ['', id].includes(query.project));
  if (project === undefined)
    throw new HTTPException(404, { message: `There is no project ${query.project}.` });
  const path = pageIn(query.path, project.siteUrl);
  /** Undefined while nothing is loaded. */
  const range = await rangeOf(reader, project.id, query, workspace.settings.reports);
  const common = {
    ...listOf(query),
    path,
    project: project.id,
    from: range?.first ?? null,
    to: range?.last ?? null,
    grain: range?.chart.grain ?? null,
    before_from: range?.compared.before?.first ?? null,
    before_to: range?.compared.before?.last ?? null,
    days_earlier: range?.compared.days_earlier ?? null,
    months_earlier: range?.compared.months_earlier ?? null,
    shift: range?.compared.shift ?? 0,
    week: range?.week ?? null,
    /** The pages of the sitemap, for a page that needs them. */
    listed: '[]',
    base: '',
    /** The pages that moved, for a list that marks them. */
    moved: null,
  };
  return {
    workspace,
    now: runtime.now(),
    reader,
    query: { ...query, path },
    project,
    range,
    /** The rows of a query in `queries/`, which can use any parameter of the address and of the range. */
    rows: (name: string, more?: Parameters): Promise<Row[]> => rowsOf(reader, name, { ...common, ...more }),
  };
}
