import type { DuckDBConnection } from '@duckdb/node-api';
import type { Act } from '../../effects/place.js';
import { recordPublications } from '../identity.js';
import type { Warehouse } from '../warehouse.js';
import { actAction, type LastAct, publisherActions } from './actions.js';
import { daysOf, type LakeOptions, withLake } from './opened.js';

/**
 * The last claim to send in the lake. Throws an `ElsewhereError` if another copy of the workspace has
 * published there. Writes nothing, so it does not matter whether the store honors conditions.
 */
export const readLastAct = (warehouse: Warehouse, options: LakeOptions): Promise<LastAct | undefined> =>
  withLake(warehouse, options, async (work) => {
    const days = await daysOf(work);
    days.expectOwnPlace();
    return days.lastAct;
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
  withLake(warehouse, options, async (work) => {
    const days = await daysOf(work);
    if (days.version < 0) return;
    claim.expectKnown(days.lastAct);
    const { number } = await claim.record(work.connection, days.lastAct);
    await days.commit(() => {
      days.expectOwnPlace();
      claim.expectKnown(days.lastAct);
      return days.lastAct?.number === number ? [] : [actAction(number, work)];
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
  withLake(warehouse, options, async (work) => {
    const { publisher, storage, connection } = work;
    await storage.expectConditions();
    const days = await daysOf(work);
    if (days.version < 0 || publisher === undefined) return undefined;
    let [act, number]: [Act | undefined, number] = [undefined, 0];
    await days.commit(() => {
      const last = days.lastAct?.number;
      if (act !== undefined && last === act.number) return [];
      act = nextOf(last);
      number = Math.max(publisher.number, days.latestPublisher?.number ?? 0) + 1;
      return [
        ...publisherActions({ ...work, publisher: { ...publisher, number } }),
        actAction(act.number, work),
      ];
    }, true);
    await recordPublications(connection, number);
    return act;
  });
