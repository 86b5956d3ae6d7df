import { z } from 'zod';
import type { Event } from '../charts/chart.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';

/** A row of the table `notes`. */
export const noteRow = z.object({
  day: dayColumn,
  text: z.string(),
  path: z.string(),
  is_break: z.boolean(),
});

/** A note as charts mark it. One that is not about the whole site says about which pages it is. */
export const eventOf = ({ day, text, path, is_break: isBreak }: z.infer<typeof noteRow>): Event => ({
  day,
  text: text + (path === '*' ? '' : ` (${path})`),
  isBreak,
});

/** The notes about a project, oldest first. */
export const readNotes = async (reader: Reader, project: string): Promise<Event[]> =>
  (await reader.query(readSql(import.meta.url, 'statements/notes.sql'), noteRow, { project })).map(eventOf);
