import { min, subDays } from 'date-fns';
import { stat } from 'node:fs/promises';
import { hourOf } from '../api/hour.js';
import { lateJobs } from '../agents/lifecycle.js';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { dayOf, lastEndedDay } from '../day.js';
import { codeOf, messageOf } from '../errors.js';
import { DISAGREEMENT, PAGING, readPageSize } from '../export/paging.js';
import { readFirstDay } from '../export/range.js';
import { KEPT_FROM } from '../export/retention.js';
import { dayRecords, type DayState, NO_CHANGES, recommendedSettleDays } from '../export/day-records.js';
import { needsPerson, planProject, retryAt } from '../export/plan.js';
import { freeDisk, ignoreMissing, isOnReadOnlyDisk } from '../files.js';
import { isSameRecipient } from '../config/recipients.js';
import { ALERT } from '../mail/delivery.js';
import { readDayFailures, readLastVerification } from '../state/days.js';
import { type Delivery, deliveryKey, deliveryRow, readDeliveries } from '../state/emails.js';
import { readFact, readLimit, readRequests } from '../state/platform.js';
import { type JobState, readJobsOf } from '../state/jobs.js';
import { readMessagesOf } from '../state/messages.js';
import { isSamePlace, placeOf, placeRow, readWorkspaceRow } from '../state/workspace.js';
import { readLastRuns, readOutages } from '../state/runs.js';
import { whyIncomplete } from '../state/witness.js';
import type { State } from '../state/state.js';
import { type KnownDays, readFutureRecords } from '../steps/history.js';
import { readWritten } from '../mail/deliver.js';
import { keyProblem } from './findings.js';

/** What the status is read from. */
interface StatusSources {
  readonly days: KnownDays;
  readonly state: State;
}

/** What `readership status` shows, in every format. */
export async function readStatus(sources: StatusSources, workspace: Workspace, now: Date) {
  return {
    projects: workspace.projects.map((project) => readProjectStatus(sources, project, workspace, now)),
    operations: await readOperations(sources, workspace, now),
  };
}

/** The state of a project's history, as `status --json` writes it. */
export type Status = Awaited<ReturnType<typeof readStatus>>;
export type ProjectStatus = ReturnType<typeof readProjectStatus>;

function readProjectStatus(
  { days, state }: StatusSources,
  project: ProjectSettings,
  { settings, credentials }: Workspace,
  now: Date,
) {
  const { start, settleDays, requestsPerHour: perHour } = settings.history;
  const { runs, settling } = days.projects.get(project.id) ?? { runs: [], settling: NO_CHANGES };
  const {
    records: ofDays,
    plan,
    requests,
  } = planProject(project, dayRecords(runs, readDayFailures(state, project.id)), state, settings, {}, now);
  const known = readRequests(state, credentials.bucketOf(project), now);
  const hour = hourOf(known, now);
  const first = readFirstDay(state, project.id, start, now);
  const records = [...ofDays.values()];
  const stored = records.filter((record) => record.is_stored);
  const inState = (wanted: DayState) =>
    records.filter((record) => record.state === wanted).map(({ day }) => day);
  const keptFrom = readLimit(state, project.id, KEPT_FROM, now);
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
    isYesterdayStored: ofDays.get(lastEndedDay(now))?.is_stored ?? false,
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
    pageSize: readPageSize(state, project.id, now).rows,
    /** The day from which more rows at once are tried again, if there are fewer than documented. */
    pageSizeUntil: readLimit(state, project.id, PAGING, now)?.until ?? null,
    /** The first day that the platform keeps, if it refuses older ones, and the day from which these are tried again. */
    keptFrom: keptFrom?.value ?? null,
    keptFromUntil: keptFrom?.until ?? null,
    /** What the platform's answers have shown that cannot be right. */
    disagreement: readFact(state, project.id, DISAGREEMENT, now) ?? null,
    recommendedSettleDays: recommendedSettleDays(settling, settleDays) ?? null,
    /** When the first of the stored days was loaded; null without any. */
    firstLoadAt: stored.length === 0 ? null : min(stored.map(({ attempted_at: at }) => at)),
    verifiedAt: readLastVerification(state, project.id) ?? null,
    requests: {
      usedThisHour: hour.used(now),
      /** The cap set by hand. */
      perHour,
      /** The requests an hour that the platform accepts, as its refusals showed; null if they did not. */
      learnedPerHour: known.limit ?? null,
      /** Until when the platform's refusal of a request keeps others from being sent; null if none does. */
      pausedUntil: hour.pausedUntil(now) ?? null,
      left: requests,
    },
  };
}

/** How long a failed email needs attention; after that, later emails have replaced it. */
const FAILED_DAYS = 14;
/**
 * An email that was last tried earlier is not retried anymore: its alert is over, its report is too
 * old, or its recipient was removed.
 */
const RETRIED_DAYS = 2;

/** What does not belong to one project's history, as `status --json` writes it. */
export type OperationsStatus = Awaited<ReturnType<typeof readOperations>>;

async function readOperations({ days, state }: StatusSources, workspace: Workspace, now: Date) {
  const { projects, historyFile, dataDir, machine, configuration, settings, witness } = workspace;
  const sendsFrom = configuration && placeRow.parse(readWorkspaceRow(state));
  const jobs = readJobsOf(state, projects);
  /** How many jobs are in each state. */
  const states: Partial<Record<JobState, number>> = {};
  for (const { state } of jobs) states[state] = (states[state] ?? 0) + 1;
  const deliveries = readDeliveries(state);
  const triedWithin = (days: number, inState: Delivery['state']) =>
    deliveries.filter(({ state, tried_at }) => state === inState && tried_at >= subDays(now, days));
  const outages = readOutages(state, now);
  return {
    /** When the history was last written; null before its first day. */
    writtenAt: (await stat(historyFile).catch(ignoreMissing))?.mtime ?? null,
    diskFreeBytes: await freeDisk(dataDir),
    /** The data directory, if its disk is mounted read-only: nothing can be loaded or sent. */
    readOnlyDisk: (await isOnReadOnlyDisk(dataDir)) ? dataDir : null,
    /** Where jobs, messages and emails are sent from, and whether that is here. */
    sendsFrom: sendsFrom && { ...sendsFrom, isHere: isSamePlace(sendsFrom, await placeOf(dataDir, machine)) },
    /** Why the state may not know everything that was sent. */
    stateProblem: stateProblem(state, witness),
    datedInFuture: [...days.datedInFuture, ...readFutureRecords(state, now)],
    /** Pull requests that could not be looked up, and why. */
    pullRequestProblems: jobs
      .filter(({ merged_on, closed_on }) => merged_on === null && closed_on === null)
      .filter(({ pull_request_problem }) => pull_request_problem !== null)
      .map(({ id, pull_request_problem: problem }) => ({ job: id, problem })),
    runs: readLastRuns(state, now).filter(({ step }) => step !== 'publish'),
    outages: outages.filter(({ over_at }) => over_at === null),
    jobs: states,
    plannedMessages: readMessagesOf(state, projects).filter(({ state }) => state === 'planned').length,
    ...readUnsettled(state, projects, now),
    /** Emails and posts that were refused or given up, and why, unless the recipient was removed or has got a later one. */
    failedDeliveries: triedWithin(FAILED_DAYS, 'failed')
      .filter((failed) => isStillRecipient(settings, failed))
      .filter((failed) => !deliveries.some((later) => isLater(later, failed)))
      .map((failed) => failedDelivery.parse(failed)),
    /** Emails that were only written to a file, and are sent once there is a mail server. */
    writtenDeliveries:
      configuration === undefined
        ? []
        : readWritten(state, workspace, now).map(({ report, period, recipient, note }) => {
            return { report, period, recipient, file: note };
          }),
    /** Emails and posts that have not been sent yet, and why. */
    waitingDeliveries: triedWithin(RETRIED_DAYS, 'waiting').map(({ report, period, recipient, note }) => {
      return { report, period, recipient, note };
    }),
  };
}

/** What may or may not have been sent, and jobs that take too long: until a person settles it. */
export type Unsettled = ReturnType<typeof readUnsettled>;

export function readUnsettled(state: State, projects: Workspace['projects'], now: Date) {
  const isUnknown = ({ state }: { readonly state: string }) => state === 'unknown';
  const jobs = readJobsOf(state, projects);
  const messages = readMessagesOf(state, projects);
  return {
    unknownJobs: jobs.filter(isUnknown).map(({ id, project, path }) => ({ id, project, path })),
    unknownMessages: messages.filter(isUnknown).map(({ id, job }) => ({ id, job })),
    /** Jobs that have been active for much longer than such jobs usually are. */
    lateJobs: lateJobs(jobs, messages, now),
    unknownDeliveries: readDeliveries(state)
      .filter(isUnknown)
      .map((delivery) => deliveryKey.parse(delivery)),
  };
}

const failedDelivery = deliveryKey.extend({ note: deliveryRow.shape.note });

/** Whether the recipient of a delivery is still one of its report, or of alerts. */
function isStillRecipient({ reports, alerts }: Settings, { report, recipient }: Delivery): boolean {
  const audiences = report === ALERT ? [alerts] : (reports.audiences[report] ?? []);
  return audiences.some(({ to }) => to.some((one) => isSameRecipient(one, recipient)));
}

/** Whether a delivery was sent after another of the same report to the same recipient. */
const isLater = (later: Delivery, failed: Delivery): boolean =>
  later.report === failed.report &&
  later.project === failed.project &&
  isSameRecipient(later.recipient, failed.recipient) &&
  later.state === 'sent' &&
  later.tried_at > failed.tried_at;

function stateProblem(state: State, witness: string | undefined): string | null {
  try {
    return whyIncomplete({ state, witness })?.message ?? null;
  } catch (error) {
    // Who may only read the history may not be able to read the witness.
    const isForbidden = error instanceof Error && codeOf(error.cause) === 'EACCES';
    return isForbidden ? null : messageOf(error);
  }
}
