import type { DuckDBConnection } from '@duckdb/node-api';
import type { Act } from '../../effects/place.js';
import { setWorkspace } from '../identity.js';
import type { Warehouse } from '../warehouse.js';
import {
  actAction,
  type LakeOptions,
  type LastAct,
  lastAct,
  latestPublication,
  placeAction,
} from './actions.js';
import { daysOf, withLake } from './opened.js';
import { expectOwnPlace } from './rights.js';

/**
 * The last claim to send in the lake. Throws an `ElsewhereError` if another copy of the workspace has
 * published there. Writes nothing, so it does not matter whether the store honors conditions.
 */
export const readLastAct = (warehouse: Warehouse, options: LakeOptions): Promise<LastAct | undefined> =>
  withLake(warehouse, options, async (lake) => {
    const days = await daysOf(lake);
    expectOwnPlace(days);
    return lastAct(days);
  });

/** How a state claims to send: it records the claim after the `last` one, if it knows everything before. */
export interface Claim {
  /** Throws an `ElsewhereError` if it does not. */
  readonly expectKnown: (last: LastAct | undefined) => void;
  readonly record: (connection: DuckDBConnection, last: LastAct | undefined) => Promise<Act>;
}

/**
 * Claims to send, in the lake if it exists. The claim is recorded first: a kill before the commit
 * leaves a state that knows the lake, one after it a state that knows its own claim. Of two copies
 * that claim at the same time, the second finds a claim that it does not know.
 */
export const claimAct = (warehouse: Warehouse, options: LakeOptions, claim: Claim): Promise<void> =>
  withLake(warehouse, options, async (lake) => {
    const days = await daysOf(lake);
    if (days.version < 0) return;
    claim.expectKnown(lastAct(days));
    const { number } = await claim.record(lake.connection, lastAct(days));
    await days.commit(() => {
      expectOwnPlace(days);
      claim.expectKnown(lastAct(days));
      return [actAction(number, lake)];
    }, true);
  });

/**
 * Makes this copy of the workspace the one that publishes to the lake and sends. Returns its claim;
 * undefined without a lake.
 */
export const claimLake = (
  warehouse: Warehouse,
  options: LakeOptions,
  nextOf: (last: number | undefined) => Act,
): Promise<Act | undefined> =>
  withLake(warehouse, options, async (lake) => {
    const { here, workspace, storage, connection } = lake;
    await storage.expectConditions();
    const days = await daysOf(lake);
    if (days.version < 0 || here === undefined) return undefined;
    let act: Act | undefined;
    let { publications } = workspace;
    await days.commit(() => {
      act = nextOf(lastAct(days)?.number);
      publications = Math.max(workspace.publications, latestPublication(days)?.number ?? 0) + 1;
      return [placeAction(here, publications, lake), actAction(act.number, lake)];
    }, true);
    await setWorkspace(connection, { publications });
    return act;
  });
