import type { DuckDBConnection } from '@duckdb/node-api';
import type { Claim } from '../../effects/place.js';
import { setWorkspace } from '../identity.js';
import type { Warehouse } from '../warehouse.js';
import {
  claimAction,
  type LakeOptions,
  type LastClaim,
  lastClaim,
  latestPublication,
  placeAction,
} from './actions.js';
import { daysOf, withLake } from './opened.js';
import { expectOwnPlace } from './rights.js';

/**
 * The last claim to send in the lake. Throws an `ElsewhereError` if another copy of the workspace has
 * published there. Writes nothing, so it does not matter whether the store honors conditions.
 */
export const readLastClaim = (warehouse: Warehouse, options: LakeOptions): Promise<LastClaim | undefined> =>
  withLake(warehouse, options, async (lake) => {
    const days = await daysOf(lake);
    expectOwnPlace(days);
    return lastClaim(days);
  });

/** How a state claims to send: it records the claim after the `last` one, if it knows everything before. */
export interface ClaimSteps {
  /** Throws an `ElsewhereError` if it does not. */
  readonly expectKnown: (last: LastClaim | undefined) => void;
  readonly record: (connection: DuckDBConnection, last: LastClaim | undefined) => Promise<Claim>;
}

/**
 * Claims to send, in the lake if it exists. The claim is recorded first: a kill before the commit
 * leaves a state that knows the lake, one after it a state that knows its own claim. Of two copies
 * that claim at the same time, the second finds a claim that it does not know.
 */
export const claimInLake = (warehouse: Warehouse, options: LakeOptions, steps: ClaimSteps): Promise<void> =>
  withLake(warehouse, options, async (lake) => {
    const days = await daysOf(lake);
    if (days.version < 0) return;
    steps.expectKnown(lastClaim(days));
    const { number } = await steps.record(lake.connection, lastClaim(days));
    await days.commit(() => {
      expectOwnPlace(days);
      steps.expectKnown(lastClaim(days));
      return [claimAction(number, lake)];
    }, true);
  });

/**
 * Makes this copy of the workspace the one that publishes to the lake and sends. Returns its claim;
 * undefined without a lake.
 */
export const adoptLake = (
  warehouse: Warehouse,
  options: LakeOptions,
  nextOf: (last: number | undefined) => Claim,
): Promise<Claim | undefined> =>
  withLake(warehouse, options, async (lake) => {
    const { here, workspace, storage, connection } = lake;
    await storage.expectConditions();
    const days = await daysOf(lake);
    if (days.version < 0 || here === undefined) return undefined;
    let claim: Claim | undefined;
    let { publications } = workspace;
    await days.commit(() => {
      claim = nextOf(lastClaim(days)?.number);
      publications = Math.max(workspace.publications, latestPublication(days)?.number ?? 0) + 1;
      return [placeAction(here, publications, lake), claimAction(claim.number, lake)];
    }, true);
    await setWorkspace(connection, { publications });
    return claim;
  });
