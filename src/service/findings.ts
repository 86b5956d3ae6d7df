import type { ProjectSettings } from '../config/schema.js';
import { dayOf, daysBetween } from '../day.js';
import { LockedError, messageOf, OtherVersionError } from '../errors.js';
import { longDay } from '../format/days.js';
import { counted } from '../format/numbers.js';

/** The result of one check; unless it is `pass`, its words say what to do. */
export interface CheckResult {
  readonly check: string;
  readonly verdict: 'pass' | 'warn' | 'fail';
  readonly words: string;
}

export type Verdict = Omit<CheckResult, 'check'>;

export const pass = (words: string): Verdict => ({ verdict: 'pass', words });
export const warn = (words: string): Verdict => ({ verdict: 'warn', words });
export const fail = (words: string): Verdict => ({ verdict: 'fail', words });

/** How long before a key expires `status` and `doctor` say so. */
const EXPIRY_WARNING_DAYS = 14;

/** What is wrong with a project's key, or will soon be. */
export function keyProblem(
  { apiKeyEnv, apiKeyExpires: expires }: ProjectSettings,
  now: Date,
): Verdict | undefined {
  const days = expires === undefined ? Infinity : daysBetween(dayOf(now), expires);
  if (expires === undefined || days > EXPIRY_WARNING_DAYS) return undefined;
  const when = days < 0 ? 'expired' : days === 0 ? 'expires today,' : `expires in ${counted(days, 'day')},`;
  return warn(
    `${apiKeyEnv} ${when} on ${longDay(expires)}. Create a key on the API keys page of the dashboard, replace it, and set apiKeyExpires to its last day.`,
  );
}

/** What an error says: a failure, or a warning if waiting for a command, or the next one that writes, ends the problem. */
export const problemOf = (error: unknown): Verdict =>
  (error instanceof OtherVersionError || error instanceof LockedError ? warn : fail)(messageOf(error));

/** The result of one check, which may throw. */
export async function found(check: string, examined: () => Verdict | Promise<Verdict>): Promise<CheckResult> {
  try {
    return { check, ...(await examined()) };
  } catch (error) {
    return { check, ...problemOf(error) };
  }
}
