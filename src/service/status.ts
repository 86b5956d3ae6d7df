import { max, min, subDays } from 'date-fns';
import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { readJobsOf } from '../agents/job.js';
import type { JobState } from '../agents/lifecycle.js';
import { readMessagesOf } from '../agents/messages.js';
import { readHour } from '../budget/ledger.js';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { dayOf, lastEndedDay } from '../day.js';
import { EffectsJournal } from '../effects/journal.js';
import { isSamePlace, placeOf, readPlace } from '../effects/place.js';
import { codeOf, messageOf } from '../errors.js';
import { KEPT_FROM, PAGING, readLimit, readPageSize } from '../export/facts.js';
import type { DayState } from '../export/ledger.js';
import { needsPerson, retryAt } from '../export/plan.js';
import { planProject } from '../export/planned.js';
import { readFirstDay } from '../export/range.js';
import { readLastVerification } from '../export/verify.js';
import { freeDisk } from '../files.js';
import { inSequence, moment } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import { ALERT, type Delivery, deliveryKey, deliveryRow } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { readLastRuns, readOutages } from '../steps/runs.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { keyProblem } from './findings.js';

/** What `readership status` shows, in every format. */
export async function readStatus(reader: Reader, workspace: Workspace, now: Date) {
  return {
    projects: await Promise.all(
      workspace.projects.map((project) => readProjectStatus(reader, project, workspace, now)),
    ),
    operations: await readOperations(reader, workspace, now),
  };
}

/** The state of a project's history, as `status --json` writes it. */
export type Status = Awaited<ReturnType<typeof readStatus>>;
export type ProjectStatus = Awaited<ReturnType<typeof readProjectStatus>>;

async function readProjectStatus(
  reader: Reader,
  project: ProjectSettings,
  { settings, credentials }: Workspace,
  now: Date,
) {
  const { start, settleDays, requestsPerHour: perHour } = settings.history;
  const { ledger, plan, requests } = await planProject(reader, project, settings, {}, now);
  const hour = await readHour(reader, credentials.bucketOf(project), now);
  const first = await readFirstDay(reader, project.id, start, now);
  const records = [...ledger.values()];
  const stored = records.filter((record) => record.is_stored);
  const inState = (state: DayState) =>
    records.filter((record) => record.state === state).map(({ day }) => day);
  const keptFrom = await readLimit(reader, project.id, KEPT_FROM, now);
  const settling = await readSettling(reader, project.id, now);
  return {
    project: project.id,
    name: project.name,
    /** Why its key must be replaced soon; null if it need not be. */
    keyProblem: keyProblem(project, now)?.words ?? null,
    /** The first day of the history, configured or found; null if unknown. */
    historyFrom: first ?? null,
    /** The first and the last day stored. */
    firstDay: stored[0]?.day ?? null,
    lastDay: stored.at(-1)?.day ?? null,
    daysStored: stored.length,
    /** Days of the history that were never loaded. */
    gaps: plan?.missing ?? [],
    isYesterdayStored: ledger.get(lastEndedDay(now))?.is_stored ?? false,
    provisional: inState('provisional'),
    inconsistent: inState('inconsistent'),
    failed: inState('failed'),
    /** Days that have not added up for so many nights that a person has to look, and why. */
    stuck: records
      .filter(needsPerson)
      .map((record) => ({ day: record.day, why: record.failure, readAgain: dayOf(retryAt(record)) })),
    final: inState('final').length,
    settling,
    settleDays,
    /** The most rows that the platform returns at once. */
    pageSize: (await readPageSize(reader, project.id, now)).rows,
    /** The day from which more rows at once are tried again, if there are fewer than documented. */
    pageSizeUntil: (await readLimit(reader, project.id, PAGING, now))?.until ?? null,
    /** The first day that the platform keeps, if it refuses older ones, and the day from which these are tried again. */
    keptFrom: keptFrom?.value ?? null,
    keptFromUntil: keptFrom?.until ?? null,
    recommendedSettleDays: recommendedSettleDays(settling, settleDays) ?? null,
    /** When the first of the stored days was loaded; null without any. */
    firstLoadAt: stored.length === 0 ? null : min(stored.map(({ attempted_at: at }) => at)),
    verifiedAt: (await readLastVerification(reader, project.id)) ?? null,
    requests: {
      usedThisHour: hour.used(now),
      /** The cap set by hand. */
      perHour,
      /** Until when the platform's refusal of a request keeps others from being sent; null if none does. */
      pausedUntil: hour.pausedUntil(now) ?? null,
      left: requests,
    },
  };
}

const SETTLING = readSql(import.meta.url, 'statements/settling.sql');
const settlingRow = z.object({
  restated_days: z.int(),
  oldest_change_days: z.int().nullable(),
  median_change_days: z.number(),
});
/** How long days took to settle, measured by loads that found changes. */
type Settling = z.infer<typeof settlingRow>;

export async function readSettling(reader: Reader, project: string, now: Date): Promise<Settling> {
  const [row] = await reader.query(SETTLING, settlingRow, { project, now });
  return row ?? { restated_days: 0, oldest_change_days: null, median_change_days: 0 };
}

/**
 * The `settleDays` recommended by the measured changes, if one came at the very end of the wait: later ones may have been
 * missed. Undefined if the setting seems long enough: a shorter one would save a few requests, and risk changes.
 */
export function recommendedSettleDays(
  { oldest_change_days: oldest }: Settling,
  settleDays: number,
): number | undefined {
  return oldest !== null && oldest >= settleDays ? oldest + 1 : undefined;
}

const FUTURE_ROWS = readSql(import.meta.url, 'statements/future-rows.sql');
const futureRow = z.object({ kind: z.string(), rows: z.int(), latest: timestampColumn });
/** Records of a kind that are dated in the future, and the furthest of their times. */
type FutureRows = z.infer<typeof futureRow>;

/** Records that a wrong clock dated in the future. They hold nothing back for longer than their own delay. */
export const readFutureRows = (reader: Reader, now: Date): Promise<FutureRows[]> =>
  reader.query(FUTURE_ROWS, futureRow, { now });

/** What they are, and what that means. */
export function futureWords(found: readonly FutureRows[]): string {
  const kinds = inSequence(found.map(({ kind, rows }) => `${thousands(rows)} × ${kind}`));
  return `${kinds}, up to ${moment(max(found.map(({ latest }) => latest)))}, by a clock that was wrong; they delay nothing`;
}

/** How long an email of unknown outcome needs attention; after that, later emails have replaced it. */
const ASKED_ABOUT_DAYS = 14;
/**
 * An email that was last tried earlier is not retried anymore: its alert is over, its report is too
 * old, or its recipient was removed.
 */
const RETRIED_DAYS = 2;

/** What does not belong to one project's history, as `status --json` writes it. */
export type OperationsStatus = Awaited<ReturnType<typeof readOperations>>;

async function readOperations(reader: Reader, workspace: Workspace, now: Date) {
  const { projects, historyFile, dataDir, machine, configuration, settings } = workspace;
  const sendsFrom = configuration && (await readPlace(reader));
  const jobs = await readJobsOf(reader, projects);
  /** How many jobs are in each state. */
  const states: Partial<Record<JobState, number>> = {};
  for (const { state } of jobs) states[state] = (states[state] ?? 0) + 1;
  const messages = await readMessagesOf(reader, projects);
  const deliveries = await readDeliveries(reader);
  const triedWithin = (days: number, inState: Delivery['state']) =>
    deliveries.filter(({ state, tried_at }) => state === inState && tried_at >= subDays(now, days));
  const outages = await readOutages(reader, now);
  return {
    publishedAt: (await stat(historyFile)).mtime,
    diskFreeBytes: await freeDisk(dataDir),
    /** Where jobs, messages and emails are sent from, and whether that is here. */
    sendsFrom: sendsFrom && { ...sendsFrom, isHere: isSamePlace(sendsFrom, await placeOf(dataDir, machine)) },
    /** What is wrong with the effects journal. */
    journalProblem: await journalProblem(dataDir),
    datedInFuture: await readFutureRows(reader, now),
    /** Pull requests that could not be looked up, and why. */
    pullRequestProblems: jobs
      .filter(({ merged_on, closed_on }) => merged_on === null && closed_on === null)
      .filter(({ pull_request_problem }) => pull_request_problem !== null)
      .map(({ id, pull_request_problem: problem }) => ({ job: id, problem })),
    // While the history is being published, the publish step is still running.
    runs: (await readLastRuns(reader, now)).filter(({ step }) => step !== 'publish'),
    outages: outages.filter(({ over_at }) => over_at === null),
    jobs: states,
    unconfirmedJobs: jobs
      .filter(({ state }) => state === 'unconfirmed')
      .map(({ id, project, path }) => ({ id, project, path })),
    plannedMessages: messages.filter(({ state }) => state === 'planned').length,
    unconfirmedMessages: messages
      .filter(({ state }) => state === 'unconfirmed')
      .map(({ id, job }) => ({ id, job })),
    unknownDeliveries: triedWithin(ASKED_ABOUT_DAYS, 'unknown').map((delivery) =>
      deliveryKey.parse(delivery),
    ),
    /** Emails and posts that were refused or given up, and why, unless the recipient was removed or has got a later one. */
    failedDeliveries: triedWithin(ASKED_ABOUT_DAYS, 'failed')
      .filter((failed) => recipientsOf(settings, failed).includes(failed.recipient))
      .filter((failed) => !deliveries.some((later) => isLater(later, failed)))
      .map((failed) => deliveryKey.extend({ note: deliveryRow.shape.note }).parse(failed)),
    /** Emails and posts that have not been sent yet, and why. */
    waitingDeliveries: triedWithin(RETRIED_DAYS, 'waiting').map(({ report, period, recipient, note }) => {
      return { report, period, recipient, note };
    }),
  };
}

/** The recipients now configured for the report of a delivery, or for alerts. */
const recipientsOf = ({ reports, alerts }: Settings, { report }: Delivery): readonly string[] =>
  report === ALERT ? alerts.to : (reports.audiences[report] ?? []).flatMap(({ to }) => to);

/** Whether a delivery was sent after another of the same report to the same recipient. */
const isLater = (later: Delivery, { report, project, recipient, tried_at }: Delivery): boolean =>
  later.report === report &&
  later.project === project &&
  later.recipient === recipient &&
  later.state === 'sent' &&
  later.tried_at > tried_at;

/** Null if the journal is intact, or another user's. Another process may be writing it, so nothing is changed. */
async function journalProblem(dataDir: string): Promise<string | null> {
  try {
    await EffectsJournal.open(dataDir, 'reader');
    return null;
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    return [codeOf(error), codeOf(cause)].includes('EACCES') ? null : messageOf(error);
  }
}
