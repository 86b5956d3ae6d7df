import type { DuckDBConnection } from '@duckdb/node-api';
import type { PlatformClock } from '../api/clock.js';
import { ClockError } from '../api/errors.js';
import { type Act, knowsAct, nextAct, type Permission, sentUnknown } from '../effects/place.js';
import { ReadershipError } from '../errors.js';
import { lakeOptions } from '../steps/publish.js';
import type { StepContext } from '../steps/step.js';
import { readWorkspaceRow, recordAct, setWorkspace } from '../warehouse/identity.js';
import type { LastAct } from '../warehouse/lake/actions.js';
import { claimAct, claimLake, readLastAct } from '../warehouse/lake/acts.js';

interface Sender extends Pick<
  StepContext,
  'warehouse' | 'journal' | 'here' | 'elsewhere' | 'lake' | 'shard' | 'settings' | 'now' | 'signal'
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
  const { warehouse, journal, elsewhere, clock, now } = sender;
  const options = lakeOptions(sender);
  let ofClock: ClockError | undefined;
  let ofState: Promise<Error | undefined> | undefined;
  /** Throws if neither knows the last claim. The journal and the database agree, except in `doctor`, which changes neither. */
  const expectKnown = (last: LastAct | undefined, stored = journal.act): void => {
    if (last !== undefined && ![journal.act, stored].some((act) => knowsAct(act, last.number)))
      throw sentUnknown(journal.lastSentAt, last.at);
  };
  const expectNewest = async (): Promise<void> => {
    const {
      act,
      act_after: after,
      act_needed: needed,
      act_needed_at: at,
    } = await readWorkspaceRow(warehouse);
    const stored = { number: act, after };
    if (options !== undefined) expectKnown(await readLastAct(warehouse, options), stored);
    if (at !== null && needed > 0) expectKnown({ number: needed, at }, stored);
  };
  const record = async (connection: DuckDBConnection, last: LastAct | undefined): Promise<Act> => {
    const act = nextAct(journal.act, last?.number);
    await recordAct(connection, act);
    await journal.recordAct(act, now());
    return act;
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
        : refused(claimAct(warehouse, options, { expectKnown, record })),
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
 * Makes this copy of the workspace the one that sends. The lake is told first, because the other
 * copy can only learn of it there; until the rest is recorded, this copy does not know its claim and sends nothing.
 */
export async function adopt(context: StepContext): Promise<void> {
  const { warehouse, journal, here, now } = context;
  const options = lakeOptions(context);
  const { act_needed: needed } = await readWorkspaceRow(warehouse);
  const known = Math.max(journal.act.number, needed);
  const nextOf = (last = 0): Act => nextAct(journal.act, Math.max(known, last));
  const claimed = options && (await claimLake(warehouse, options, nextOf));
  const act = claimed ?? (known > 0 ? nextOf() : undefined);
  if (act !== undefined) await journal.recordAct(act, now());
  await journal.settleAt(here, now());
  await warehouse.exclusive(async (connection) => {
    await setWorkspace(connection, here);
    if (act !== undefined) await recordAct(connection, act);
  });
}
