import type { Intent, JournalEntry, Outcome } from '../effects/entries.js';
import type { EffectsJournal } from '../effects/journal.js';
import type { Job } from './job.js';
import type { JobChange, JobsTask, Remote } from './ledger.js';
import { changePrompt, type Prompt } from './messages.js';
import { evidenceRow } from './reasons.js';

/** The effects journal's record of a job or message, written before it is sent. */
export function intentOf({ job, message }: Prompt): Intent {
  const { reference: ref, project, path, prompt, planned_at } = message ?? job;
  const common = { ref, project, path, prompt, plannedAt: planned_at.toISOString() };
  if (message !== undefined)
    return { effect: 'message', ...common, job: job.reference, origin: message.origin };
  return {
    effect: 'job',
    ...common,
    reason: job.reason,
    evidence: evidenceRow.parse(job),
    remoteId: job.remote_id ?? undefined,
    prLink: job.pr_link ?? undefined,
  };
}

/** The journal's record of what the platform has. */
export const sentAs = ({ id, status, prLink }: Remote): Outcome => ({
  event: 'sent',
  remoteId: id,
  remoteStatus: status,
  prLink: prLink ?? undefined,
});

/** A journal entry for the last attempt at a job or message. */
export const entryAbout = (prompt: Prompt, outcome: Outcome, now: Date): JournalEntry => ({
  ...intentOf(prompt),
  ...outcome,
  attempt: attemptOf(prompt.message ?? prompt.job),
  at: now.toISOString(),
});

/** When a job or message was last sent, or else planned: what identifies an attempt. */
export const attemptOf = ({ submitted_at, planned_at }: Pick<Job, 'submitted_at' | 'planned_at'>): string =>
  (submitted_at ?? planned_at).toISOString();

/** What the journal records of what a person found out or decided. */
const OUTCOMES = { 'found-not-sent': 'not-sent', withdrawn: 'refused' } as const;

/** Records what a person found out about a job or message whose reply was lost, or that it is not to be sent: in the journal first. */
export async function settlePrompt(
  { journal, warehouse, now }: Pick<JobsTask, 'warehouse' | 'now'> & { readonly journal: EffectsJournal },
  prompt: Prompt,
  found: Omit<JobChange<'found-sent' | keyof typeof OUTCOMES>, 'now'>,
): Promise<Prompt> {
  const at = now();
  const { event, remote = {} } = found;
  const outcome = event === 'found-sent' ? sentAs(remote) : { event: OUTCOMES[event] };
  const note = found.note ?? 'settled by a person';
  await journal.append([entryAbout(prompt, { ...outcome, note }, at)]);
  return changePrompt(warehouse, prompt, { ...found, now: at });
}
