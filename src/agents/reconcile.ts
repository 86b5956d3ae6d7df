import { z } from 'zod';
import {
  countedDifferences,
  type Difference,
  differences,
  type Entry,
  type EntryOf,
  type Fate,
  type Reconciliation,
  type StoredEffect,
} from '../warehouse/effect.js';
import type { EffectsJournal } from '../warehouse/effects.js';
import { readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { evidenceRow, NO_EVIDENCE } from './select.js';
import { entryAbout } from './journal.js';
import {
  isRemoteJob,
  type Job,
  jobInState,
  planJobWithin,
  readJobs,
  recordTransition,
  referenceOf,
  storeJob,
} from './ledger.js';
import { JOB_STATES, type JobState, type MessageState, OPEN_STATES } from './lifecycle.js';
import { type Message, planMessageWithin, readMessages, storeMessage } from './messages.js';

const STORED_JOBS = readSql(import.meta.url, 'statements/job-fates.sql');
const ENTERED = 'restored from the effects journal';
const INTERRUPTED = 'the process ended before the reply was recorded';

const FATE_OF_JOB: Readonly<Record<JobState, Fate>> = {
  ...{ planned: 'unsent', submitting: 'sending', unconfirmed: 'unknown', refused: 'refused' },
  ...{ active: 'sent', completed: 'sent', failed: 'sent', archived: 'sent' },
};
const FATE_OF_MESSAGE: Readonly<Record<MessageState, Fate>> = {
  ...{ planned: 'unsent', submitting: 'sending', sent: 'sent', unconfirmed: 'unknown', refused: 'refused' },
};

const storedJobRow = z
  .object({
    ...{ project: z.string(), path: z.string(), state: z.enum(JOB_STATES) },
    ...{ planned_at: timestampColumn, submitted_at: timestampColumn.nullable() },
  })
  .transform(({ project, path, state, planned_at, submitted_at }) => ({
    project,
    reference: referenceOf(project, path, planned_at),
    fate: FATE_OF_JOB[state],
    attempt: (submitted_at ?? planned_at).toISOString(),
  }));

/** Brings jobs in the journal and the database into agreement. */
export async function reconcileJobs(
  journal: EffectsJournal,
  warehouse: Warehouse,
  now: Date,
): Promise<Reconciliation> {
  const rows = await warehouse.query(STORED_JOBS, storedJobRow);
  const found = differences(journal.known('job'), rows);
  const jobs = await jobsOf(
    warehouse,
    found.flatMap(({ row }) => row?.project ?? []),
  );
  const jobOf = (row: StoredEffect | undefined) => (row === undefined ? undefined : jobs.get(row.reference));
  await journal.append(found.flatMap((one) => missingEntry(one, jobOf(one.row), now)));
  await warehouse.transaction(async (transaction) => {
    for (const one of found) await storeJobFate(transaction, one, jobOf(one.row), now);
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
    fate: FATE_OF_MESSAGE[message.state],
    attempt: (message.submitted_at ?? message.planned_at).toISOString(),
  }));
  const found = differences(journal.known('message'), rows);
  await journal.append(found.flatMap((one) => missingEntry(one, one.row, now)));
  const jobs = await jobsOf(
    warehouse,
    found.flatMap(({ row, effect }) => row?.project ?? effect?.last.project ?? []),
  );
  await warehouse.transaction(async (transaction) => {
    for (const one of found) {
      const job = jobs.get(one.row?.jobReference ?? one.effect?.last.job ?? '');
      if (job !== undefined) await storeMessageFate(transaction, one, job, now);
    }
  });
  return countedDifferences(found);
}

async function jobsOf(warehouse: Warehouse, projects: readonly string[]): Promise<Map<string, Job>> {
  const jobs = new Map<string, Job>();
  for (const project of new Set(projects))
    for (const job of await readJobs(warehouse, project)) jobs.set(job.reference, job);
  return jobs;
}

/** The entry missing from the journal, based on whichever of the two has more information. */
function missingEntry(
  { effect, knows, write }: Difference<EntryOf<'job' | 'message'>, StoredEffect>,
  row: Job | Message | undefined,
  now: Date,
): Entry[] {
  if (write === undefined) return [];
  if (knows === 'journal' && effect !== undefined)
    return [{ ...effect.last, event: write, note: INTERRUPTED, at: now.toISOString() }];
  if (row === undefined) return [];
  const { note } = row;
  const words = row.state === 'submitting' ? INTERRUPTED : (note ?? undefined);
  return [entryAbout(row, { event: write, ...(words === undefined ? {} : { note: words }) }, now)];
}

async function storeJobFate(
  transaction: Transaction,
  { effect, knows, store }: Difference<EntryOf<'job'>, StoredEffect>,
  known: Job | undefined,
  now: Date,
): Promise<void> {
  if (store === undefined) return;
  const last = knows === 'journal' ? effect?.last : undefined;
  const job = known ?? (last && (await enterJob(transaction, last)));
  if (job === undefined) return;
  const attempts = knows === 'journal' ? attemptsAfter(effect?.attempts, known?.submitted_at) : [];
  for (const at of attempts) await recordAttempt(transaction, { job: job.id }, at);
  const remoteId = last?.remoteId ?? job.remote_id;
  const state = jobStateOf(store, remoteId);
  await storeJob(transaction, {
    ...{ ...jobInState(job, state, remoteId), polls: 0 },
    submitted_at: last === undefined ? job.submitted_at : new Date(last.attempt),
    remote_status: last?.remoteStatus ?? job.remote_status,
    pr_link: last?.prLink ?? job.pr_link,
    next_poll_at: state === 'active' ? now : null,
    ended_at: OPEN_STATES.has(state) ? null : now,
    note: noteOf(last, store),
  });
  const cause = known === undefined ? ENTERED : (noteOf(last, store) ?? ENTERED);
  const from = attempts.length > 0 ? 'submitting' : job.state;
  await recordTransition(transaction, { job: job.id, now, from, to: state, cause });
}

async function storeMessageFate(
  transaction: Transaction,
  { effect, row, knows, store }: Difference<EntryOf<'message'>, StoredEffect & Message>,
  job: Job,
  now: Date,
): Promise<void> {
  if (store === undefined) return;
  const last = knows === 'journal' ? effect?.last : undefined;
  const planned = last && { origin: last.origin, prompt: last.prompt, now: new Date(last.plannedAt) };
  const id = row?.id ?? (planned && (await planMessageWithin(transaction, job.id, planned, ENTERED)));
  if (id === undefined) return;
  const attempts = knows === 'journal' ? attemptsAfter(effect?.attempts, row?.submitted_at) : [];
  for (const at of attempts) await recordAttempt(transaction, { job: job.id, message: id }, at);
  const state = MESSAGE_STATE_OF[store];
  const submitted_at = last === undefined ? (row?.submitted_at ?? null) : new Date(last.attempt);
  const note = noteOf(last, store);
  await storeMessage(transaction, { id, state, submitted_at, note });
  const from = attempts.length > 0 ? 'submitting' : (row?.state ?? 'planned');
  const change = { job: job.id, message: id, now, from, to: state } as const;
  await recordTransition(transaction, { ...change, cause: note ?? ENTERED });
  if (state !== 'sent' || !isRemoteJob(job)) return;
  const reopened = { ...job, state: 'active', polls: 0, next_poll_at: now, ended_at: null } as const;
  await storeJob(transaction, reopened);
  if (job.state !== 'active')
    await recordTransition(transaction, {
      ...{ job: job.id, now, from: job.state, to: 'active', cause: `message ${id} was sent` },
    });
}

async function enterJob(transaction: Transaction, entry: EntryOf<'job'>): Promise<Job> {
  const { project, path, reason, prompt, ref: reference } = entry;
  const evidence = evidenceRow.safeParse(entry.evidence).data ?? NO_EVIDENCE;
  const now = new Date(entry.plannedAt);
  const plan = { project, page: { path, reason, evidence }, prompt, now };
  return {
    ...{ id: await planJobWithin(transaction, plan, ENTERED), state: 'planned', reference },
    ...{ project, path, reason, prompt, planned_at: now, submitted_at: null, ...evidence },
    ...{ remote_id: null, remote_status: null, pr_link: null, polls: 0, next_poll_at: null },
    ...{ ended_at: null, note: null, merged_on: null, closed_on: null, pull_request_problem: null },
  };
}

const MESSAGE_STATE_OF = {
  ...{ unsent: 'planned', sent: 'sent', refused: 'refused', unknown: 'unconfirmed' },
} as const satisfies Record<Exclude<Fate, 'sending'>, MessageState>;

/** A job whose id was lost cannot be polled; a person must find it. */
function jobStateOf(fate: Exclude<Fate, 'sending'>, remoteId: string | null): JobState {
  if (fate === 'sent') return remoteId === null ? 'unconfirmed' : 'active';
  return MESSAGE_STATE_OF[fate];
}

const noteOf = (last: Entry | undefined, fate: Fate): string | null =>
  fate === 'sent' ? null : (last?.note ?? (fate === 'unknown' ? INTERRUPTED : null));

/** Attempts missing from the database; they count toward the hourly prompts. */
const attemptsAfter = (attempts: ReadonlySet<string> = new Set(), last: Date | null | undefined): Date[] =>
  [...attempts].map((at) => new Date(at)).filter((at) => last == null || at > last);

const recordAttempt = (
  transaction: Transaction,
  of: { readonly job: number; readonly message?: number },
  now: Date,
): Promise<void> =>
  recordTransition(transaction, { ...of, now, from: 'planned', to: 'submitting', cause: ENTERED });
