import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { day } from './day.js';

/** Columns with a day or a time, as queries pass them to a row schema: `YYYY-MM-DD`, and ISO 8601 in UTC. */
export const dayColumn = z.string().transform(day);
export const timestampColumn = z.string().transform((text) => new Date(text));
/** A boolean as SQLite has it. */
export const flagColumn = z.int().transform((flag) => flag === 1);

/** The text of a `.sql` file next to the module with the given `import.meta.url`. */
export const readSql = (moduleUrl: string, file: string): string =>
  readFileSync(new URL(file, moduleUrl), 'utf8');
