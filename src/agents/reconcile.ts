import { ENDED_STATUSES } from '../api/schema.js';
import type { Ending, EntryOf, Fate, JournalEntry } from '../effects/entries.js';
import type { EffectLedger } from '../effects/reconcile.js';
import type { Difference } from '../effects/settle.js';
import type { Reader } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import { attemptOf, entryAbout } from './intents.js';
import { isRemoteJob, type Job, readJobs } from './job.js';
import { jobIn, planJob, recordTransition, storeJob } from './ledger.js';
import type { JobState, MessageState } from './lifecycle.js';
import { planMessage, type Prompt, readPrompts, reopenJob, storeMessage } from './messages.js';
import { evidenceRow, NO_EVIDENCE } from './reasons.js';

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

type PromptEntry = EntryOf<'job' | 'message'>;
type StoredPrompt = Awaited<ReturnType<typeof storedPrompts>>[number];

const storedPrompts = async (reader: Reader, kind: PromptEntry['effect']) =>
  (await readPrompts(reader, kind, null)).map(({ job, message }) => {
    const { reference, state } = message ?? job;
    return { job, message, reference, fate: FATES[state], attempt: attemptOf(message ?? job) };
  });

const promptLedger = (kind: PromptEntry['effect']): EffectLedger<PromptEntry['effect'], StoredPrompt> => ({
  kind,
  read: (reader) => storedPrompts(reader, kind),
  entry: missingEntry,
  store: async (transaction, found, now) => {
    const jobs = await readJobs(transaction, null);
    for (const { row, last, store } of found)
      if (row === undefined && last !== undefined && store !== undefined)
        await enter(transaction, last, jobs);
    const prompts = await storedPrompts(transaction, kind);
    const byReference = new Map(prompts.map((prompt) => [prompt.reference, prompt]));
    for (const one of found) {
      const prompt = byReference.get(one.reference);
      if (prompt !== undefined) await storeFate(transaction, one, prompt, now);
    }
  },
});

export const JOBS = promptLedger('job');
/** The follow-up messages to jobs, which are reconciled after these. */
export const MESSAGES = promptLedger('message');

function missingEntry(
  { row, last }: Difference<PromptEntry, StoredPrompt>,
  event: Ending,
  now: Date,
): JournalEntry | undefined {
  if (last !== undefined) return { ...last, event, note: INTERRUPTED, at: now.toISOString() };
  if (row === undefined) return undefined;
  const note = row.fate === 'sending' ? INTERRUPTED : (row.message ?? row.job).note;
  return entryAbout(row, { event, note: note ?? undefined }, now);
}

/** Plans what only the journal knows. A message to a job that neither knows cannot be entered. */
async function enter(transaction: Transaction, entry: PromptEntry, jobs: readonly Job[]): Promise<void> {
  const { project, path, prompt } = entry;
  const now = new Date(entry.plannedAt);
  if (entry.effect === 'job') {
    const evidence = evidenceRow.safeParse(entry.evidence).data ?? NO_EVIDENCE;
    const page = { path, reason: entry.reason, evidence };
    await planJob(transaction, { project, page, prompt, now }, RESTORED);
    return;
  }
  const job = jobs.find(({ reference }) => reference === entry.job);
  if (job !== undefined) await planMessage(transaction, job, { origin: entry.origin, prompt, now }, RESTORED);
}

/** Stores what became of a job or message, and the attempts that the database lacks. */
async function storeFate(
  transaction: Transaction,
  { row, last, attempts, store }: Difference<PromptEntry, StoredPrompt>,
  { job, message }: Prompt,
  now: Date,
): Promise<void> {
  if (store === undefined) return;
  const known = message ?? job;
  const note = store === 'sent' ? null : (last?.note ?? (store === 'unknown' ? INTERRUPTED : null));
  const submitted_at = last === undefined ? known.submitted_at : new Date(last.attempt);
  let state: JobState | MessageState = STATES[store];
  if (message === undefined) {
    const { remoteId: id, remoteStatus: status, prLink } = last?.effect === 'job' ? last : {};
    const remote = { id, status, prLink };
    state = jobStateOf(store, id ?? job.remote_id, prLink ?? job.pr_link, status);
    // A job that had ended in the reply ended then.
    const at = state === 'active' || last === undefined ? now : new Date(last.at);
    await storeJob(transaction, jobIn({ ...job, submitted_at }, state, { now: at, remote, note }));
  } else await storeMessage(transaction, { ...message, state: STATES[store], submitted_at, note });
  const change = { job: job.id, message: message?.id };
  // They count toward the hourly prompts.
  const missing = [...attempts]
    .map((at) => new Date(at))
    .filter((at) => known.submitted_at === null || at > known.submitted_at);
  for (const attempt of missing)
    await recordTransition(transaction, {
      ...change,
      now: attempt,
      from: 'planned',
      to: 'submitting',
      cause: RESTORED,
    });
  const from = missing.length > 0 ? 'submitting' : known.state;
  const cause = row === undefined ? RESTORED : (note ?? RESTORED);
  await recordTransition(transaction, { ...change, now, from, to: state, cause });
  if (message !== undefined && store === 'sent' && isRemoteJob(job))
    await reopenJob(transaction, job, message, { now });
}

/** A job whose id was lost cannot be polled: it has ended with its pull request, or a person must find it. */
function jobStateOf(
  fate: Ending,
  remoteId: string | null,
  prLink: string | null,
  remoteStatus: string | undefined,
): JobState {
  if (fate !== 'sent') return STATES[fate];
  if (remoteId === null) return prLink === null ? 'unconfirmed' : 'completed';
  return ENDED_STATUSES.find((ended) => ended === remoteStatus) ?? 'active';
}
