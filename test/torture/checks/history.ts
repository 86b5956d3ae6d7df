import { addDays, day as toDay, dayOf } from '../../../src/day.js';
import type { Books } from '../books.js';
import type { Truth } from '../truth.js';

/** A walk may take minutes, by the fast clock, and what it read is as old as its first page. */
const LONGEST_WALK_MS = 30 * 60_000;

export interface Platform {
  readonly truth: Truth;
  readonly now: Date;
  /** The furthest that a command's clock was behind. */
  readonly behindMs: number;
}

/**
 * Days that are not as the platform showed them when they were loaded, and not listed as failed or inconsistent. A
 * final or provisional day must be exact, whatever befell the commands that loaded it.
 */
export function historyFaults({ days }: Books, { truth, now, behindMs }: Platform): string[] {
  const today = dayOf(now);
  return days.flatMap(({ day, state, loaded_ms, is_short, fingerprint }) => {
    if (day >= today) return [`${day} is stored, and has not ended`];
    if (loaded_ms === null || state === 'failed' || state === 'inconsistent') return [];
    if (is_short) return [`${day} is ${state ?? 'nothing'}, and does not add up`];
    const shown = truth.shownBetween(toDay(day), loaded_ms - LONGEST_WALK_MS, loaded_ms + behindMs);
    return shown.has(fingerprint)
      ? []
      : [
          `${day} is ${state ?? 'nothing'}, loaded ${new Date(loaded_ms).toISOString()}, and is not what the platform had`,
        ];
  });
}

/** What is still open when nothing has failed for days: a day missing, not final though it settled, or not exact. */
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
