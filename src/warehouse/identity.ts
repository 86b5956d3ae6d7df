import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { EffectsJournal } from '../effects/journal.js';
import { type Claim, isSamePlace, type Place, placeSchema } from '../effects/place.js';
import { type Reader, readerOf, runStatement, timestampColumn } from './query.js';
import type { Warehouse } from './warehouse.js';

const TAKE_ID = 'INSERT INTO workspace (id) SELECT $proposed WHERE NOT EXISTS (FROM workspace)';
const REMEMBER_LAKE =
  'UPDATE workspace SET lakes = list_append(list_filter(coalesce(lakes, []), known -> known <> $location), $location)';

const text = z.string().nullable().default(null);
const number = z.int().default(0);
const workspaceRow = z.object({
  id: z.string().default(''),
  /** Where it sends from. */
  machine: text,
  host: text,
  path: text,
  /** The lake that is up to date. */
  lake: text,
  lakes: z.array(z.string()).nullable().default(null),
  /** How often the workspace was published to a lake, as far as this database knows. */
  publications: number,
  claim: number,
  claim_after: number,
  claim_needed: number,
  claim_needed_at: timestampColumn.nullable().default(null),
});
export type WorkspaceRow = z.infer<typeof workspaceRow>;

/** The row of a database that is not known to belong to a workspace. */
export const NO_WORKSPACE: WorkspaceRow = workspaceRow.parse({});

/** What a database records of the workspace's identity, publishing and sending. */
export async function readWorkspaceRow(reader: Reader): Promise<WorkspaceRow> {
  const [row] = await reader.query('FROM workspace', workspaceRow);
  return row ?? NO_WORKSPACE;
}

/** Changes what the live database records. */
export async function setWorkspace(
  connection: DuckDBConnection,
  values: Partial<Omit<WorkspaceRow, 'id' | 'lakes'>>,
): Promise<void> {
  const columns = Object.keys(values).map((name) => `${name} = $${name}`);
  await runStatement(connection, `UPDATE workspace SET ${columns.join(', ')}`, values);
}

/** The workspace id of a live database, which adopts the proposed id if it has none. */
export async function workspaceIdOf(
  connection: DuckDBConnection,
  proposed: string = randomUUID(),
): Promise<string> {
  await runStatement(connection, TAKE_ID, { proposed });
  return (await readWorkspaceRow(readerOf(connection))).id;
}

/**
 * Gives the live database and the effects journal next to it the same id, and the same place to
 * send from: what either of them has, the journal before the database, or else `here`. Throws a
 * `StorageError` if they belong to different workspaces. Returns the place.
 */
export async function agreeOnWorkspace(
  journal: EffectsJournal,
  warehouse: Warehouse,
  { here, now }: { readonly here: Place; readonly now: Date },
): Promise<Place> {
  await journal.assignTo(
    await warehouse.transaction(({ connection }) => workspaceIdOf(connection, journal.workspace)),
  );
  const stored = await readPlace(warehouse);
  const place = journal.place ?? stored ?? here;
  if (journal.place === undefined) await journal.settleAt(place, now);
  if (stored === undefined || !isSamePlace(stored, place))
    await warehouse.exclusive((connection) => setWorkspace(connection, place));
  return place;
}

/** Where the workspace sends from; undefined if that was never recorded. */
export const readPlace = async (reader: Reader): Promise<Place | undefined> =>
  placeSchema.safeParse(await readWorkspaceRow(reader)).data;

/** Records a claim, and that the database knows everything before it. */
export const recordClaim = (connection: DuckDBConnection, { number, after }: Claim): Promise<void> =>
  setWorkspace(connection, { claim: number, claim_after: after, claim_needed: 0 });

/** Gives the database and the journal next to it the latest claim of either. Both know by now what the other knew. */
export async function agreeOnClaim(journal: EffectsJournal, warehouse: Warehouse, now: Date): Promise<void> {
  const { claim: number, claim_after: after } = await readWorkspaceRow(warehouse);
  const known = journal.lastClaim;
  if (known.number < number) await journal.recordClaim({ number, after }, now);
  if (known.number > number)
    await warehouse.exclusive((connection) =>
      setWorkspace(connection, { claim: known.number, claim_after: known.after }),
    );
}

/** Records that there is a lake of this workspace: if it is missing later, it is not a new one. */
export async function rememberLake(connection: DuckDBConnection, location: string): Promise<void> {
  await runStatement(connection, REMEMBER_LAKE, { location });
}
