import { subDays } from 'date-fns';
import { stat } from 'node:fs/promises';
import { type Job, readJobs } from '../agents/ledger.js';
import { type Message, readMessages } from '../agents/messages.js';
import { freeDisk } from '../files.js';
import type { DeliveryKey } from '../mail/delivery.js';
import { readDeliveries } from '../mail/ledger.js';
import { isGoingOn, type LastRun, type Outage, readLastRuns, readOutages } from '../steps/runs.js';
import type { Reader } from '../warehouse/query.js';
import type { Workspace } from '../app/workspace.js';

/** How long an email of unknown outcome needs a person: later emails have then said the same or more. */
const ASKED_ABOUT_DAYS = 14;

/** What is not of one project's history, as `status --json` writes it. */
export interface OperationsStatus {
  readonly publishedAt: Date;
  readonly diskFreeBytes: number;
  readonly runs: readonly LastRun[];
  /** Those that go on. */
  readonly outages: readonly Outage[];
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
    outages: (await readOutages(reader, now)).filter((outage) => isOfBefore(outage) && isGoingOn(outage)),
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
