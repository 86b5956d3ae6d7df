import type { PlatformClock } from '../api/clock.js';
import { ClockError } from '../api/errors.js';
import type { Refusal } from '../effects/journal.js';
import { type ElsewhereError, isSamePlace, type Place, sendsElsewhere } from '../effects/place.js';
import { ReadershipError } from '../errors.js';
import type { StepContext } from '../steps/step.js';
import { recordPlace } from '../warehouse/identity.js';
import { claimLake, expectLatestIn } from '../warehouse/lake/lake.js';
import type { Workspace } from './workspace.js';

/** Set if the workspace sends from another place. The built-in sandbox has nobody to send to. */
export const elsewhereOf = (
  { configuration }: Pick<Workspace, 'configuration'>,
  { here, journal }: Pick<StepContext, 'here' | 'journal'>,
  place: Place,
): ElsewhereError | undefined =>
  configuration === undefined || isSamePlace(place, here)
    ? undefined
    : sendsElsewhere(place, here, journal.lastSentAt);

interface Acting extends Pick<
  StepContext,
  'warehouse' | 'here' | 'elsewhere' | 'lake' | 'shard' | 'settings' | 'now' | 'signal'
> {
  /** Absent where nothing is to be sent yet. */
  readonly clock?: PlatformClock;
}

const lakeOptions = ({
  lake,
  shard,
  settings,
  here,
  now,
  signal,
}: Pick<StepContext, 'lake' | 'shard' | 'settings' | 'here' | 'now' | 'signal'>) =>
  lake && { place: lake, shard, source: settings.baseUrl, here, now: now(), signal };

/**
 * Why nothing may be sent now; undefined if it may. The lake is read at most once, and only when
 * something is to be sent.
 */
export function refusalOf(acting: Acting): Refusal {
  const { warehouse, elsewhere, clock } = acting;
  const options = lakeOptions(acting);
  let ofClock: ClockError | undefined;
  let fromLake: Promise<ReadershipError | undefined> | undefined;
  return async () => {
    if (elsewhere !== undefined) return elsewhere;
    await clock?.ask();
    const apart = clock?.tooFarApart();
    if (apart !== undefined) return (ofClock ??= new ClockError(apart));
    return options && (fromLake ??= refused(expectLatestIn(warehouse, options)));
  };
}

async function refused(check: Promise<void>): Promise<ReadershipError | undefined> {
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
 * copy can only learn of it there.
 */
export async function adopt(context: StepContext): Promise<void> {
  const { warehouse, journal, here, now } = context;
  const options = lakeOptions(context);
  if (options !== undefined) await claimLake(warehouse, options);
  await journal.settleAt(here, now());
  await recordPlace(warehouse, here);
}
