import { PausedError } from '../../src/api/errors.js';
import { type PaceOptions, RequestPace } from '../../src/api/pace.js';
import { requestsOf } from '../../src/state/platform.js';
import type { State } from '../../src/state/state.js';
import { openTestState } from '../open-state.js';
import { DAY_MS, MINUTE_MS, type SleepingClock, sleepingClock } from '../sleeping-clock.js';

export const BUCKET = 'key 0123456789abcdef';

interface Options extends Partial<PaceOptions> {
  readonly bucket?: string;
}

/** A pace with a cap of 100 requests an hour that waits as long as it must. */
export const paceOn = (state: State, clock: SleepingClock, { bucket = BUCKET, ...options }: Options = {}) =>
  new RequestPace({
    counts: requestsOf(state, bucket),
    cap: 100,
    maxWaitMs: DAY_MS,
    now: clock.now,
    sleep: clock.sleep,
    ...options,
  });

/** Such a pace with a new state and a clock of its own. */
export async function openPace(options: Options = {}) {
  const clock = sleepingClock();
  const { state } = await openTestState();
  return { clock, state, pace: paceOn(state, clock, options) };
}

/** Takes as many requests as possible without waiting. */
export async function takeAll(pace: RequestPace): Promise<number> {
  for (let taken = 0; ; taken++) {
    try {
      await pace.next();
    } catch (error) {
      if (error instanceof PausedError) return taken;
      throw error;
    }
  }
}

/** The maximum number of these moments in any rolling hour. */
export function busiestHour(moments: readonly Date[]): number {
  const times = moments.map((moment) => moment.getTime());
  return Math.max(
    0,
    ...times.map((end) => times.filter((time) => time <= end && end - time < 60 * MINUTE_MS).length),
  );
}
