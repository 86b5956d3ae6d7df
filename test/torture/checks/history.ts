import { addDays, day as toDay, dayOf } from '../../../src/day.js';
import type { Books } from '../books.js';
import type { Truth } from '../truth.js';

/** A walk may take minutes by the fast clock, and its data is as old as its first page. */
const LONGEST_WALK_MS = 30 * 60_000;

export interface Platform {
  readonly truth: Truth;
  readonly now: Date;
  /** The largest delay of a command's clock. */
  readonly behindMs: number;
}

/**
 * Days that differ from what the platform showed when they were loaded, and are not listed as failed or inconsistent. A
 * final or provisional day must be exact, whatever happened to the commands that loaded it.
 */
export function historyFaults({ days }: Books, { truth, now, behindMs }: Platform): string[] {
  const today = dayOf(now);
  return days.flatMap(({ day, state, loaded_ms, is_short, fingerprint }) => {
    if (day >= today) return [`${day} is stored, but has not ended`];
    if (loaded_ms === null || state === 'failed' || state === 'inconsistent') return [];
    if (is_short) return [`${day} is ${state ?? 'nothing'}, but does not add up`];
    const shown = truth.shownBetween(toDay(day), loaded_ms - LONGEST_WALK_MS, loaded_ms + behindMs);
    return shown.has(fingerprint)
      ? []
      : [
          `${day} is ${state ?? 'nothing'}, loaded ${new Date(loaded_ms).toISOString()}, but is not what the platform had`,
        ];
  });
}

/** What is still open after days without failures: a day that is missing, not final although settled, or not exact. */
export function openDays({ days }: Books, { truth, now }: Platform, settleDays: number): string[] {
  const known = new Map(days.map((row) => [row.day, row]));
  const open: string[] = [];
  for (let day = truth.site.firstDay; day < dayOf(now); day = addDays(day, 1)) {
    const row = known.get(day);
    const mustBeFinal = addDays(day, settleDays + 1) < dayOf(now);
    if (row === undefined) open.push(`${day} is missing`);
    else if (row.state !== 'final' && (mustBeFinal || row.state !== 'provisional'))
      open.push(`${day} is ${row.state ?? 'nothing'}`);
    else if (truth.isSettled(day, now) && row.fingerprint !== truth.settled(day))
      open.push(`${day} is not what the platform has`);
  }
  return open;
}
