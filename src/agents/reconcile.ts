import { z } from 'zod';
import type { Ending, Entry, EntryOf, Fate } from '../effects/entries.js';
import {
  countedDifferences,
  type Difference,
  differences,
  type Reconciliation,
  type StoredEffect,
} from '../effects/settle.js';
import type { EffectsJournal } from '../effects/journal.js';
import { type Reader, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { attemptOf, entryAbout } from './intents.js';
import {
  isRemoteJob,
  type Job,
  jobInState,
  planJob,
  readJobsOf,
  recordTransition,
  referenceOf,
  type StateChange,
  storeJob,
} from './ledger.js';
import { JOB_STATES, type JobState, type MessageState, OPEN_STATES } from './lifecycle.js';
import { type Message, planMessage, readMessages, storeMessage } from './messages.js';
import { evidenceRow, NO_EVIDENCE } from './reasons.js';

const STORED_JOBS = 'SELECT project, path, planned_at, state, submitted_at FROM agent_jobs';
const RESTORED = 'restored from the effects journal';
const INTERRUPTED = 'the process ended before the reply was recorded';

const FATES: Readonly<Record<JobState | MessageState, Fate>> = {
  planned: 'not-sent',
  submitting: 'sending',
  unconfirmed: 'unknown',
  refused: 'refused',
  sent: 'sent',
  active: 'sent',
  completed: 'sent',
  failed: 'sent',
  archived: 'sent',
};
const STATES = {
  'not-sent': 'planned',
  sent: 'sent',
  refused: 'refused',
  unknown: 'unconfirmed',
} as const satisfies Record<Ending, MessageState>;

const storedJobRow = z
  .object({
    project: z.string(),
    path: z.string(),
    state: z.enum(JOB_STATES),
    planned_at: timestampColumn,
    submitted_at: timestampColumn.nullable(),
  })
  .transform(({ project, path, state, ...times }) => ({
    project,
    reference: referenceOf(project, path, times.planned_at),
    fate: FATES[state],
    attempt: attemptOf(times),
  }));

/** Brings jobs in the journal and the database into agreement. */
export async function reconcileJobs(
  journal: EffectsJournal,
  warehouse: Warehouse,
  now: Date,
): Promise<Reconciliation> {
  const found = differences(journal.known('job'), await warehouse.query(STORED_JOBS, storedJobRow));
  const stored = await jobsOf(warehouse, found);
  await journal.append(found.flatMap((one) => missingEntry(one, stored.get(referenceIn(one)), now)));
  await warehouse.transaction(async (transaction) => {
    for (const { row, last, store } of found)
      if (row === undefined && last !== undefined && store !== undefined) await enterJob(transaction, last);
    const jobs = await jobsOf(transaction, found);
    for (const one of found) {
      const job = jobs.get(referenceIn(one));
      if (job !== undefined) await storeJobFate(transaction, one, job, now);
    }
  });
  return countedDifferences(found);
}

/** Brings follow-up messages in the journal and the database into agreement, after their jobs. */
export async function reconcileMessages(
  journal: EffectsJournal,
  warehouse: Warehouse,
  now: Date,
): Promise<Reconciliation> {
  const rows = (await readMessages(warehouse, null)).map((message) => ({
    ...message,
    fate: FATES[message.state],
    attempt: attemptOf(message),
  }));
  const found = differences(journal.known('message'), rows);
  await journal.append(found.flatMap((one) => missingEntry(one, one.row, now)));
  const jobs = await jobsOf(warehouse, found);
  await warehouse.transaction(async (transaction) => {
    for (const one of found) {
      const job = jobs.get(one.row?.jobReference ?? one.last?.job ?? '');
      if (job !== undefined) await storeMessageFate(transaction, one, job, now);
    }
  });
  return countedDifferences(found);
}

const referenceIn = ({ row, last }: Difference<EntryOf<'job'>, StoredEffect>): string =>
  row?.reference ?? last?.ref ?? '';

/** The jobs of the projects in question, by reference. */
async function jobsOf(
  reader: Reader,
  found: readonly Difference<EntryOf<'job' | 'message'>, StoredEffect & { readonly project: string }>[],
): Promise<Map<string, Job>> {
  const projects = new Set(found.flatMap(({ row, last }) => row?.project ?? last?.project ?? []));
  const jobs = await readJobsOf(
    reader,
    [...projects].map((id) => ({ id })),
  );
  return new Map(jobs.map((job) => [job.reference, job]));
}

/** The entry missing from the journal, based on whichever of the two has more information. */
function missingEntry(
  { last, write }: Difference<EntryOf<'job' | 'message'>, StoredEffect>,
  row: Job | Message | undefined,
  now: Date,
): Entry[] {
  if (write === undefined) return [];
  if (last !== undefined) return [{ ...last, event: write, note: INTERRUPTED, at: now.toISOString() }];
  if (row === undefined) return [];
  const note = row.state === 'submitting' ? INTERRUPTED : row.note;
  return [entryAbout(row, { event: write, ...(note === null ? {} : { note }) }, now)];
}

async function storeJobFate(
  transaction: Transaction,
  { row, last, attempts, store }: Difference<EntryOf<'job'>, StoredEffect>,
  job: Job,
  now: Date,
): Promise<void> {
  if (store === undefined) return;
  const remoteId = last?.remoteId ?? job.remote_id;
  const prLink = last?.prLink ?? job.pr_link;
  const state = jobStateOf(store, remoteId, prLink);
  const note = noteOf(last, store);
  await storeJob(transaction, {
    ...jobInState(job, state, remoteId),
    note,
    polls: 0,
    submitted_at: last === undefined ? job.submitted_at : new Date(last.attempt),
    remote_status: last?.remoteStatus ?? job.remote_status,
    pr_link: prLink,
    next_poll_at: state === 'active' ? now : null,
    ended_at: OPEN_STATES.has(state) ? null : now,
  });
  const cause = row === undefined ? RESTORED : (note ?? RESTORED);
  const change = { job: job.id, now, from: job.state, to: state, cause };
  await recordRestored(transaction, change, attemptsAfter(attempts, job.submitted_at));
}

async function storeMessageFate(
  transaction: Transaction,
  { row, last, attempts, store }: Difference<EntryOf<'message'>, StoredEffect & Message>,
  job: Job,
  now: Date,
): Promise<void> {
  if (store === undefined) return;
  const planned = last && { origin: last.origin, prompt: last.prompt, now: new Date(last.plannedAt) };
  const id = row?.id ?? (planned && (await planMessage(transaction, job, planned, RESTORED)));
  if (id === undefined) return;
  const state = STATES[store];
  const note = noteOf(last, store);
  const submitted_at = last === undefined ? (row?.submitted_at ?? null) : new Date(last.attempt);
  await storeMessage(transaction, { id, state, submitted_at, note });
  const cause = note ?? RESTORED;
  const change = { job: job.id, message: id, now, from: row?.state ?? 'planned', to: state, cause };
  await recordRestored(transaction, change, attemptsAfter(attempts, row?.submitted_at));
  if (state !== 'sent' || !isRemoteJob(job)) return;
  const reopened = { ...job, state: 'active', polls: 0, next_poll_at: now, ended_at: null } as const;
  await storeJob(transaction, reopened);
  if (job.state !== 'active')
    await recordTransition(transaction, {
      job: job.id,
      now,
      from: job.state,
      to: 'active',
      cause: `message ${id} was sent`,
    });
}

const enterJob = (
  transaction: Transaction,
  { project, path, reason, prompt, plannedAt, evidence, draw }: EntryOf<'job'>,
): Promise<number> => {
  const page = { path, reason, evidence: evidenceRow.safeParse(evidence).data ?? NO_EVIDENCE };
  return planJob(transaction, { project, page, prompt, now: new Date(plannedAt), draw }, RESTORED);
};

/** A job whose id was lost cannot be polled: it has ended with its pull request, or a person must find it. */
function jobStateOf(fate: Ending, remoteId: string | null, prLink: string | null): JobState {
  if (fate === 'sent' && remoteId === null) return prLink === null ? 'unconfirmed' : 'completed';
  if (fate === 'sent') return 'active';
  return STATES[fate];
}

const noteOf = (last: Entry | undefined, fate: Ending): string | null =>
  fate === 'sent' ? null : (last?.note ?? (fate === 'unknown' ? INTERRUPTED : null));

/** Attempts missing from the database. */
const attemptsAfter = (attempts: ReadonlySet<string>, last: Date | null | undefined): Date[] =>
  [...attempts].map((at) => new Date(at)).filter((at) => last == null || at > last);

/** Records a change and the attempts before it, which count toward the hourly prompts. */
async function recordRestored(
  transaction: Transaction,
  change: StateChange,
  attempts: readonly Date[],
): Promise<void> {
  for (const now of attempts)
    await recordTransition(transaction, {
      ...change,
      now,
      from: 'planned',
      to: 'submitting',
      cause: RESTORED,
    });
  const from = attempts.length > 0 ? 'submitting' : change.from;
  await recordTransition(transaction, { ...change, from });
}
