import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Settings } from '../config/schema.js';
import type { Day } from '../day.js';
import { version } from '../files.js';
import { BOOKKEEPING, tableDigests } from '../warehouse/visible.js';
import type { Reader } from '../warehouse/query.js';
import type { ReportDefinition } from './definition.js';
import { findTemplates, readPalette } from './templates.js';

/** Sending emails changes this one, and not what reports are about. */
const HIDDEN = { ...BOOKKEEPING, deliveries: 'all' } as const;

/** Tables that every run changes. A report that reads one of them is rendered each time. */
const OF_EVERY_RUN = /\b(?:runs|deliveries|request_uses|unfinished_pages|verifications)\b/i;

/**
 * Digests of all that the pages of a report show besides project and period: the history as readers see it, the
 * definition, templates and settings, the version of Readership, and the day, which SQL may ask for. A page with the
 * same digest is the same. Undefined for a report that asks for what every run changes.
 */
export async function sourceOfPages(
  reader: Reader,
  workspaceDir: string | undefined,
  { reports, mail }: Pick<Settings, 'reports' | 'mail'>,
  today: Day,
  by = version,
): Promise<(report: ReportDefinition, about: object) => string | undefined> {
  const templates = [...(await findTemplates(workspaceDir))].sort();
  const common = JSON.stringify([
    ...[by, today, reports, mail],
    await Promise.all(templates.map(async ([name, file]) => [name, await readFile(file, 'utf8')])),
    await readPalette(workspaceDir),
    await tableDigests(reader, 'main', HIDDEN),
  ]);
  return (report, about) =>
    report.queries.some(({ sql }) => OF_EVERY_RUN.test(sql))
      ? undefined
      : createHash('sha256')
          .update(common)
          .update(JSON.stringify([report, about]))
          .digest('hex');
}
