import { addMilliseconds } from 'date-fns';
import { duration, moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { requestUrl, type ResponseHeaders } from '../network.js';
import { timeLimit } from '../sleep.js';
import { httpDate } from './retry-after.js';

/** Clocks further apart than this are reported. */
const TOLERANCE_MS = 10 * 60_000;
/** While clocks are further apart than this, nothing is sent. */
const MAX_APART_MS = 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * How far the platform's clock is ahead of ours, in milliseconds; negative when it is behind. Undefined when the
 * response has no readable `Date`, or comes from a cache, which keeps the `Date` of the first answer.
 */
export function skewOf({ date, age }: ResponseHeaders, now: Date): number | undefined {
  if (date === undefined || age !== undefined) return undefined;
  // A `Date` has whole seconds.
  const skewMs = httpDate(date.trim()) - Math.floor(now.getTime() / 1000) * 1000;
  return Number.isNaN(skewMs) ? undefined : skewMs;
}

/** Which clock is off and by how much, the consequences, and what to do. */
export function skewWords(baseUrl: string, skewMs: number, now: Date): string {
  const apart = Math.abs(skewMs);
  const time = apart < DAY_MS ? duration(apart) : counted(Math.round(apart / DAY_MS), 'day');
  const theirs = addMilliseconds(now, skewMs);
  return (
    `The clock of this machine is ${time} ${skewMs < 0 ? 'ahead of' : 'behind'} that of ${baseUrl} ` +
    `(${moment(now)} here, ${moment(theirs)} there). ` +
    'Days and periods that have not ended by both clocks are neither loaded nor emailed. ' +
    'Synchronize this clock with NTP; if it is right, report the other to the operators of the platform.'
  );
}

/** The headers of any response of the platform. Needs no key, and does not count toward `history.requestsPerHour`. */
export async function requestDate(baseUrl: string, signal: AbortSignal): Promise<ResponseHeaders> {
  const { headers, body } = await requestUrl(baseUrl, { signal: timeLimit(ANSWER_TIMEOUT_MS, signal) });
  await body.dump();
  return headers;
}

interface PlatformClockOptions {
  readonly baseUrl: string;
  /** The clock of this machine. */
  readonly now: () => Date;
  /** Gets the headers of any response; may throw. */
  readonly request: () => Promise<ResponseHeaders>;
  /** Called once if the clocks are more than ten minutes apart. */
  readonly onSkew: (words: string) => void;
}

/** Time as both this machine and the platform see it, by the latest response that carried a `Date`. */
export class PlatformClock {
  #skewMs = 0;
  #isReported = false;
  /** When the platform was last asked, or told the time, by this machine's clock. */
  #askedAtMs = -Infinity;

  constructor(private readonly options: PlatformClockOptions) {}

  readonly observe = (headers: ResponseHeaders): void => {
    const { baseUrl, now, onSkew } = this.options;
    const skewMs = skewOf(headers, now());
    if (skewMs === undefined) return;
    this.#skewMs = skewMs;
    this.#askedAtMs = now().getTime();
    if (this.#isReported || !this.isFarOff()) return;
    this.#isReported = true;
    onSkew(skewWords(baseUrl, skewMs, now()));
  };

  /** Whether the clocks are more than ten minutes apart, as far as is known. */
  readonly isFarOff = (): boolean => Math.abs(this.#skewMs) > TOLERANCE_MS;

  /** Whether they are so far apart that nothing may be sent. */
  readonly isTooFarOff = (): boolean => Math.abs(this.#skewMs) > MAX_APART_MS;

  /** The earlier of the two clocks, which decides what has ended. */
  readonly earlier = (): Date => addMilliseconds(this.options.now(), Math.min(0, this.#skewMs));

  /**
   * Gets the time from the platform, unless a response has just provided it: if this machine's clock
   * has moved by minutes since, it may have been set.
   */
  async update(): Promise<void> {
    const nowMs = this.options.now().getTime();
    if (Math.abs(nowMs - this.#askedAtMs) < TOLERANCE_MS) return;
    this.#askedAtMs = nowMs;
    this.observe(await this.options.request().catch(() => ({})));
  }
}
