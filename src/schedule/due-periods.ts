import { addHours, subMilliseconds } from 'date-fns';
import { z } from 'zod';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, daysIn, startOfDay } from '../day.js';
import { type Due, whatIsDue } from '../mail/due.js';
import { readDeliveries } from '../mail/ledger.js';
import type { ReportDefinition } from '../reports/catalog.js';
import { lastEnded, periodNamed, type Period } from '../reports/period.js';
import { readSql } from '../warehouse/query.js';
import type { StepContext } from './context.js';
import { recipientsOf } from './mailing.js';

const DAYS_LOADED = readSql(import.meta.url, 'statements/days-loaded.sql');

/**
 * What is due of a report: the last period that has ended, to everyone; earlier ones only to those
 * whose delivery still waits. After weeks offline, nobody is sent old news.
 */
export async function duePeriods(
  context: StepContext,
  project: ProjectSettings,
  report: Pick<ReportDefinition, 'name' | 'period'>,
): Promise<{ period: Period; due: Due }[]> {
  const { settings, warehouse, now } = context;
  const recipients = recipientsOf(settings, report.name);
  if (recipients.length === 0) return [];
  const deliveries = (await readDeliveries(warehouse)).filter(
    (delivery) => delivery.report === report.name && delivery.project === project.id,
  );
  const current = lastEnded(report.period, now(), settings.reports);
  const waiting = new Set(deliveries.flatMap(({ state, period }) => (state === 'waiting' ? period : [])));
  waiting.delete(current.name);
  // An email that was begun by a clock that was ahead waits until its period has ended.
  const earlier = [...waiting]
    .flatMap((name) => periodNamed(name, settings.reports) ?? [])
    .filter(({ last }) => last <= current.last);
  return Promise.all(
    [current, ...earlier].map(async (period) => {
      const ofPeriod = deliveries.filter((delivery) => delivery.period === period.name);
      const isOpen = (recipient: string) =>
        period === current || ofPeriod.some((delivery) => delivery.recipient === recipient);
      const state = {
        days: daysIn(period).length,
        daysLoaded: await daysLoaded(context, project, period),
        until: patienceEnd(period, settings),
        recipients: recipients.filter(isOpen),
        deliveries: ofPeriod,
      };
      return { period, due: whatIsDue(state, now()) };
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
