import { subDays } from 'date-fns';
import { stat } from 'node:fs/promises';
import { type Job, readJobs } from '../agents/ledger.js';
import { type Message, readMessages } from '../agents/messages.js';
import { lastScheduled } from '../config/cron.js';
import { type Day, dayOf, lastEndedDay } from '../day.js';
import { bytes, counted } from '../format/numbers.js';
import { duration, moment } from '../format/days.js';
import { freeDisk } from '../files.js';
import type { DeliveryKey } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { type Fault, isGoingOn, readFaults } from '../steps/runs.js';
import { type LastRun, readLastRuns } from '../steps/runs.js';
import type { Reader } from '../warehouse/query.js';
import type { ProjectStatus } from './project-status.js';
import { settleCommands } from '../print/emails.js';
import type { Workspace } from '../app/workspace.js';

/** How long an email of unknown outcome needs a person: later emails have then said the same or more. */
const ASKED_ABOUT_DAYS = 14;

/** What is not of one project's history, as `status --json` writes it. */
interface OperationsStatus {
  readonly publishedAt: Date;
  readonly diskFreeBytes: number;
  readonly runs: readonly LastRun[];
  /** Those that go on. */
  readonly faults: readonly Fault[];
  /** How many jobs are in each state. */
  readonly jobs: Readonly<Record<string, number>>;
  readonly unconfirmedJobs: readonly Pick<Job, 'id' | 'project' | 'path'>[];
  readonly unconfirmedMessages: readonly Pick<Message, 'id' | 'job'>[];
  readonly unknownDeliveries: readonly DeliveryKey[];
}

export async function readOperations(
  reader: Reader,
  { projects, historyFile, dataDir }: Workspace,
  now: Date,
): Promise<OperationsStatus> {
  const jobs = (await Promise.all(projects.map(({ id }) => readJobs(reader, id)))).flat();
  const states: Record<string, number> = {};
  for (const { state } of jobs) states[state] = (states[state] ?? 0) + 1;
  const messages = (await Promise.all(projects.map(({ id }) => readMessages(reader, id)))).flat();
  const since = subDays(now, ASKED_ABOUT_DAYS);
  const unknown = (await readDeliveries(reader)).filter(
    ({ state, tried_at: at }) => state === 'unknown' && at >= since,
  );
  return {
    publishedAt: (await stat(historyFile)).mtime,
    diskFreeBytes: await freeDisk(dataDir),
    runs: (await readLastRuns(reader, now)).filter(isOfBefore),
    faults: (await readFaults(reader, now)).filter((fault) => isOfBefore(fault) && isGoingOn(fault)),
    jobs: states,
    unconfirmedJobs: jobs
      .filter(({ state }) => state === 'unconfirmed')
      .map(({ id, project, path }) => ({ id, project, path })),
    unconfirmedMessages: messages
      .filter(({ state }) => state === 'unconfirmed')
      .map(({ id, job }) => ({ id, job })),
    unknownDeliveries: unknown.map(({ report, project, period, recipient }) => ({
      ...{ report, project, period, recipient },
    })),
  };
}

/** The run of the publishing itself was not over when this was published. */
const isOfBefore = ({ step }: { step: string }): boolean => step !== 'publish';

/** What needs a person, in words that say what to do. Nothing of it mends itself, or it should have by now. */
export function needsOf(
  projects: readonly ProjectStatus[],
  { runs, faults, unconfirmedJobs, unconfirmedMessages, unknownDeliveries }: OperationsStatus,
  { settings: { schedule }, shard }: Pick<Workspace, 'settings' | 'shard'>,
  now: Date,
): string[] {
  const exportAt = lastScheduled(schedule.export, schedule.timezone, now);
  const isExportOver = dayOf(exportAt) === dayOf(now);
  const isExported = runs.some(
    ({ step, outcome, started_at: at }) => step === 'export' && outcome === 'done' && at >= exportAt,
  );
  // Before its launch a site has no views: an export that was done found that out.
  const isExpected = (from: Day | null): boolean => (from === null ? !isExported : from <= lastEndedDay(now));
  return [
    ...projects.flatMap(({ name, failed, isYesterdayStored, historyFrom }) => [
      ...(failed.length === 0 ? [] : [`${name}: ${counted(failed.length, 'day')} failed: readership export`]),
      ...(isYesterdayStored || !isExportOver || !isExpected(historyFrom)
        ? []
        : [`${name}: yesterday is missing since ${moment(exportAt)}: readership export`]),
    ]),
    ...faults.map(
      ({ step, since, words }) => `${step} has failed since ${moment(since)}: ${words ?? 'without a word'}`,
    ),
    ...unconfirmedJobs.map(
      ({ id, path }) =>
        `job ${id} (${path}) may exist or not: readership jobs resolve ${id} --created REMOTE_ID, or --not-created`,
    ),
    ...unconfirmedMessages.map(
      ({ id, job }) =>
        `message ${id} to job ${job} may have arrived or not: readership jobs resolve ${job} --sent, or --not-sent`,
    ),
    ...unknownDeliveries.map((delivery) => {
      const { report, period, recipient } = delivery;
      return `${report} ${period} may have reached ${recipient} or not. Ask them, then: ${settleCommands(delivery, shard)}`;
    }),
  ];
}

/** Runs, jobs, mails and disk for people. */
export function operationsLines(operations: OperationsStatus, now: Date): string[] {
  const { publishedAt, diskFreeBytes, runs, jobs } = operations;
  const { unconfirmedJobs, unconfirmedMessages, unknownDeliveries } = operations;
  const ofJobs = Object.entries(jobs).map(([state, count]) => `${count} ${state}`);
  const rows: [string, string][] = [
    ...runs.map(({ step, started_at: startedAt, outcome }): [string, string] => [
      `last ${step}`,
      `${outcome}, ${moment(startedAt)}`,
    ]),
    ['jobs', `${ofJobs.join(', ') || 'none'}${unconfirmedJobs.length === 0 ? '' : ' (see below)'}`],
    [
      'messages',
      unconfirmedMessages.length === 0 ? 'all confirmed' : `${unconfirmedMessages.length} unconfirmed`,
    ],
    ['emails', unknownDeliveries.length === 0 ? 'all confirmed' : `${unknownDeliveries.length} unknown`],
    ['disk', `${bytes(diskFreeBytes)} free`],
    ['published', sinceThen(publishedAt, now)],
  ];
  return rows.map(([name, value]) => `  ${name.padEnd(14)}${value}`);
}

const sinceThen = (at: Date, now: Date): string =>
  at <= now
    ? `${duration(now.getTime() - at.getTime())} ago`
    : `${moment(at)}, which the clock here has not reached: readership doctor`;
