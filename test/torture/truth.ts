import { createHash } from 'node:crypto';
import { addDays, type Day } from '../../src/day.js';
import { createTraffic, type Improvements, type Traffic } from '../../src/sandbox/traffic/traffic.js';

/** What determines the traffic of a sandbox. */
export interface SiteKey {
  readonly seed: number;
  readonly firstDay: Day;
  readonly pages: number;
}

const HOUR_MS = 3_600_000;

/** A day of the sandbox no longer changes this many hours after its start. */
const SETTLED_MS = 72 * HOUR_MS;

/** The platform's data of a day, as a fingerprint of all its rows, directly from the traffic generator. */
export class Truth {
  readonly #traffic: Traffic;
  readonly #known = new Map<string, string>();

  /** Improvements apply from the day of their merge, days after their job was created: no day changes later. */
  constructor(
    readonly site: SiteKey,
    improvements: () => Improvements,
  ) {
    this.#traffic = createTraffic(site, improvements);
  }

  /** Every state in which the platform showed the day between two moments, both included. */
  shownBetween(day: Day, fromMs: number, toMs: number): Set<string> {
    const shown = new Set<string>();
    for (let at = Math.floor(fromMs / HOUR_MS) * HOUR_MS; at <= toMs; at += HOUR_MS)
      shown.add(this.#at(day, Math.min(at, Date.parse(day) + SETTLED_MS)));
    return shown;
  }

  settled(day: Day): string {
    return this.#at(day, Date.parse(day) + SETTLED_MS);
  }

  isSettled = (day: Day, now: Date): boolean => now.getTime() >= Date.parse(day) + SETTLED_MS;

  #at(day: Day, ms: number): string {
    const key = `${day} ${ms}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { rows } = this.#traffic.viewsIn({ from: day, to: addDays(day, 1) }, new Date(ms));
    const lines = rows.map(({ path, human, ai, total }) => [path, human, ai, total].join(' '));
    lines.sort((one, other) => (pathOf(one) < pathOf(other) ? -1 : 1));
    const fingerprint = createHash('md5').update(lines.join('\n')).digest('hex');
    this.#known.set(key, fingerprint);
    return fingerprint;
  }
}

const pathOf = (line: string): string => line.slice(0, line.indexOf(' '));
