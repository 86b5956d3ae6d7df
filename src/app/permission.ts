import type { DuckDBConnection } from '@duckdb/node-api';
import type { PlatformClock } from '../api/clock.js';
import { ClockError } from '../api/errors.js';
import { type Claim, knowsUpTo, nextClaim, type Permission, sentUnknown } from '../effects/place.js';
import { ReadershipError } from '../errors.js';
import { lakeOptions } from '../steps/publish.js';
import type { StepContext } from '../steps/step.js';
import { readWorkspaceRow, recordClaim, setWorkspace } from '../warehouse/identity.js';
import type { LastClaim } from '../warehouse/lake/actions.js';
import { adoptLake, claimInLake, readLastClaim } from '../warehouse/lake/claims.js';

interface Sender extends Pick<
  StepContext,
  'warehouse' | 'journal' | 'here' | 'elsewhere' | 'lake' | 'shard' | 'option' | 'settings' | 'now' | 'signal'
> {
  /** Without it, the clocks are not compared. */
  readonly clock?: PlatformClock;
}

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Set whichever is wrong: readership doctor';

/**
 * Why nothing may be sent now, and how to claim to send. The lake is read at most once for each, and
 * only when something is to be sent.
 */
export function permissionOf(sender: Sender): Permission {
  const { warehouse, journal, elsewhere, clock, option, now } = sender;
  const options = lakeOptions(sender);
  let ofClock: ClockError | undefined;
  let ofState: Promise<Error | undefined> | undefined;
  /** Throws if neither knows the last claim. The journal and the database agree, except in `doctor`, which changes neither. */
  const expectKnown = (last: LastClaim | undefined, stored = journal.lastClaim): void => {
    if (last !== undefined && ![journal.lastClaim, stored].some((claim) => knowsUpTo(claim, last.number)))
      throw sentUnknown(journal.lastSentAt, last.at, option);
  };
  const expectNewest = async (): Promise<void> => {
    const row = await readWorkspaceRow(warehouse);
    const stored = { number: row.claim, after: row.claim_after };
    const [needed, at] = [row.claim_needed, row.claim_needed_at];
    if (options !== undefined) expectKnown(await readLastClaim(warehouse, options), stored);
    if (at !== null && needed > 0) expectKnown({ number: needed, at }, stored);
  };
  const record = async (connection: DuckDBConnection, last: LastClaim | undefined): Promise<Claim> => {
    const claim = nextClaim(journal.lastClaim, last?.number);
    await recordClaim(connection, claim);
    await journal.recordClaim(claim, now());
    return claim;
  };
  return {
    async refusal() {
      if (elsewhere !== undefined) return elsewhere;
      await clock?.ask();
      if (clock?.isTooFarOff()) return (ofClock ??= new ClockError(TOO_FAR_OFF));
      return (ofState ??= refused(expectNewest()));
    },
    claim: () =>
      options === undefined
        ? Promise.resolve(undefined)
        : refused(claimInLake(warehouse, options, { expectKnown, record })),
  };
}

async function refused(check: Promise<void>): Promise<Error | undefined> {
  try {
    await check;
    return undefined;
  } catch (error) {
    if (error instanceof ReadershipError) return error;
    throw error;
  }
}

/**
 * Makes this copy of the workspace the one that sends. The lake is written first, because the
 * other copy can learn of it only there. Until the journal and the database have the claim, this copy sends nothing.
 */
export async function adopt(context: StepContext): Promise<void> {
  const { warehouse, journal, here, now } = context;
  const options = lakeOptions(context);
  const { claim_needed: needed } = await readWorkspaceRow(warehouse);
  const known = Math.max(journal.lastClaim.number, needed);
  const nextOf = (last = 0): Claim => nextClaim(journal.lastClaim, Math.max(known, last));
  const claimed = options && (await adoptLake(warehouse, options, nextOf));
  const claim = claimed ?? (known > 0 ? nextOf() : undefined);
  if (claim !== undefined) await journal.recordClaim(claim, now());
  await journal.settleAt(here, now());
  await warehouse.exclusive(async (connection) => {
    await setWorkspace(connection, here);
    if (claim !== undefined) await recordClaim(connection, claim);
  });
}
