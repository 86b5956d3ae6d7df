import { askForDate, type ResponseHeaders, skewOf, skewWords } from '../api/clock.js';
import type { Runtime } from '../app/workspace.js';
import { connectionFailure } from '../network.js';
import { fail, pass, type Verdict, warn } from './findings.js';

/** Clocks closer than this agree. */
const MAX_SKEW_MS = 60_000;

/** Whether a server answers, and its clock agrees. Any answer will do, since it has a Date header. */
export async function server(baseUrl: string | undefined, { now, signal }: Runtime): Promise<Verdict> {
  if (baseUrl === undefined) return pass('the built-in sandbox, with the clock of this machine');
  const headers = await askForDate(baseUrl, signal).catch((cause: unknown) => {
    throw unanswered(baseUrl, cause);
  });
  return clockVerdict(baseUrl, headers, now());
}

export const unanswered = (baseUrl: string, cause: unknown): Error =>
  new Error(`${baseUrl} does not answer (${connectionFailure(cause)}). Check the address and the network.`, {
    cause,
  });

export function clockVerdict(baseUrl: string, headers: ResponseHeaders, now: Date): Verdict {
  const skewMs = skewOf(headers, now);
  if (skewMs === undefined)
    return warn(`${baseUrl} answers without a readable Date: the clock was not checked.`);
  const apart = Math.abs(skewMs);
  if (apart < MAX_SKEW_MS) return pass(`${baseUrl} answers, and its clock agrees`);
  return (apart < 60 * MAX_SKEW_MS ? warn : fail)(skewWords(baseUrl, skewMs, now));
}
