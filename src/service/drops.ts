import { z } from 'zod';
import { addDays, type Day, daysBetween, lastEndedDay, parseDay } from '../day.js';
import { dayRange, longDay } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import type { Delivery } from '../mail/delivery.js';
import type { StepContext } from '../steps/context.js';
import { dayColumn, readSql } from '../warehouse/query.js';

/** An alert, whether or not it was sent. */
export interface Alert {
  /** Identifies it in the ledger of deliveries, together with its project if it is about one. */
  readonly period: string;
  readonly project?: string;
  /** For the subject. */
  readonly fact: string;
  readonly text: string;
  readonly data: object;
}

const DROPPED_DAYS = readSql(import.meta.url, 'statements/dropped-days.sql');

const dropRow = z.object({
  project: z.string(),
  day: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  expected: z.number(),
  low: z.int(),
});
type Drop = z.infer<typeof dropRow>;

/** Days that dropped within a week of each other count as one drop. An older one is not reported. */
const ONE_DROP_DAYS = 7;

/**
 * Alerts about drops in the last week, as a function of what was already sent: one per drop, for its
 * first day.
 */
export async function dropsFor({
  warehouse,
  projects,
  now,
}: StepContext): Promise<(sent: readonly Delivery[]) => Alert[]> {
  const last = lastEndedDay(now());
  const drops = await warehouse.query(DROPPED_DAYS, dropRow, { last_day: last });
  const isSame = (one: Drop, other: Drop) => one.project === other.project && one.audience === other.audience;
  const begun = drops.filter(
    (drop) =>
      daysBetween(drop.day, last) < ONE_DROP_DAYS &&
      drops.every((other) => {
        const days = daysBetween(other.day, drop.day);
        return !isSame(drop, other) || days <= 0 || days > ONE_DROP_DAYS;
      }),
  );
  return (sent) =>
    begun.flatMap((drop): Alert[] => {
      const project = projects.find(({ id }) => id === drop.project);
      return project === undefined ? [] : [alertOf(drop, project, sent)];
    });
}

/** A drop near one that was already reported gets the same name, since it is not a new drop. */
function alertOf(drop: Drop, { id, name }: { id: string; name: string }, sent: readonly Delivery[]): Alert {
  const { day, audience, views, expected, low } = drop;
  const prefix = `drop ${audience} `;
  const known = sent.find(
    ({ project, period }) =>
      project === id && period.startsWith(prefix) && isNear(period.slice(prefix.length), day),
  );
  const who = audience === 'ai' ? 'AI' : 'human';
  const range = dayRange({ first: day, last: day });
  return {
    project: id,
    period: known?.period ?? `${prefix}${day}`,
    fact: `${name}, ${longDay(day)}: ${counted(views, `${who} view`)}, about ${thousands(expected)} expected`,
    text:
      `${name} had ${counted(views, `${who} view`)} on ${range}. About ${thousands(expected)} were expected, and ` +
      `normal variation explains no fewer than ${thousands(low)}. Tracking may have stopped, the site may have been ` +
      `down, or it was a holiday.\n\nThe days:  readership sql "FROM site_days WHERE project = '${id.replaceAll("'", "''")}' ` +
      `AND day >= '${addDays(day, -14)}' ORDER BY day"`,
    data: drop,
  };
}

function isNear(text: string, day: Day): boolean {
  const other = parseDay(text);
  return other !== undefined && Math.abs(daysBetween(other, day)) <= ONE_DROP_DAYS;
}
