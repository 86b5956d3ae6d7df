import { addHours, subMilliseconds } from 'date-fns';
import { z } from 'zod';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, daysIn, startOfDay } from '../day.js';
import { type Due, whatIsDue } from '../mail/due.js';
import { readDeliveries } from '../mail/ledger.js';
import { findReport } from '../reports/catalog.js';
import { lastEnded, parsePeriod, type Period } from '../reports/period.js';
import { readSql } from '../warehouse/query.js';
import type { StepContext } from './context.js';
import { recipientsOf } from './mailing.js';

const DAYS_LOADED = readSql(import.meta.url, 'statements/days-loaded.sql');

/**
 * What is due of a report: the last period that has ended, to everyone; those before it only to whom they could not be
 * delivered yet. After weeks offline, nobody is sent what has become old news.
 */
export async function duePeriods(
  context: StepContext,
  project: ProjectSettings,
  report: string,
): Promise<{ period: string; due: Due }[]> {
  const { settings, warehouse, workspaceDir, now } = context;
  const recipients = recipientsOf(settings, report);
  if (recipients.length === 0) return [];
  const deliveries = (await readDeliveries(warehouse)).filter(
    (delivery) => delivery.report === report && delivery.project === project.id,
  );
  const { period: kind } = await findReport(report, workspaceDir);
  const current = lastEnded(kind, now(), settings.reports);
  const waiting = deliveries.filter(({ state }) => state === 'waiting');
  const names = new Set([current.name, ...waiting.map(({ period }) => period)]);
  const periods = [...names].map((name) => parsePeriod(kind, name, settings.reports));
  return Promise.all(
    // One that was begun by a clock that was ahead waits for its end.
    periods
      .filter(({ last }) => last <= current.last)
      .map(async (period) => {
        const { name } = period;
        const ofPeriod = deliveries.filter((delivery) => delivery.period === name);
        const isOpen = (recipient: string) =>
          name === current.name || ofPeriod.some((delivery) => delivery.recipient === recipient);
        const state = {
          days: daysIn(period).length,
          daysLoaded: await daysLoaded(context, project, period),
          until: patienceEnd(period, settings),
          recipients: recipients.filter(isOpen),
          deliveries: ofPeriod,
        };
        return { period: name, due: whatIsDue(state, now()) };
      }),
  );
}

/** Patience begins with the export that could have loaded the last day. */
function patienceEnd({ last }: Period, { schedule, reports }: Settings): Date {
  const ended = startOfDay(addDays(last, 1));
  const exportAt = nextScheduled(schedule.export, schedule.timezone, subMilliseconds(ended, 1));
  return addHours(exportAt, reports.patienceHours);
}

async function daysLoaded(
  { warehouse }: StepContext,
  project: ProjectSettings,
  { first, last }: Period,
): Promise<number> {
  const rows = await warehouse.query(DAYS_LOADED, z.object({ days: z.int() }), {
    ...{ project: project.id, first, last },
  });
  return rows[0]?.days ?? 0;
}
