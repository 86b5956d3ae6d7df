import type { AgentJob } from '../api/schema.js';
import type { Entry, Outcome } from '../effects/entries.js';
import type { Job } from './ledger.js';
import type { Message } from './messages.js';
import { evidenceRow } from './reasons.js';

/** The effects journal's record of a job, written before it is sent. */
export const jobIntent = (job: Job) => ({
  effect: 'job' as const,
  ref: job.reference,
  project: job.project,
  path: job.path,
  plannedAt: job.planned_at.toISOString(),
  reason: job.reason,
  evidence: evidenceRow.parse(job),
  prompt: job.prompt,
  ...(job.held_out === null || job.draw_seed === null
    ? {}
    : { draw: { heldOut: job.held_out, seed: job.draw_seed } }),
});

/** The effects journal's record of a follow-up message, written before it is sent. */
export const messageIntent = (message: Message) => ({
  effect: 'message' as const,
  ref: message.reference,
  project: message.project,
  path: message.path,
  job: message.jobReference,
  plannedAt: message.planned_at.toISOString(),
  origin: message.origin,
  prompt: message.prompt,
});

/** The journal's record of what the platform accepted. */
export const sentAs = ({ id, status, prLink }: AgentJob): Outcome => ({
  event: 'sent',
  remoteId: id,
  remoteStatus: status,
  ...(prLink == null ? {} : { prLink }),
});

/** A journal entry for the last attempt at a job or message. */
export const entryAbout = (effect: Job | Message, outcome: Outcome, now: Date): Entry => ({
  ...('jobReference' in effect
    ? messageIntent(effect)
    : {
        ...jobIntent(effect),
        ...(effect.remote_id === null ? {} : { remoteId: effect.remote_id }),
        ...(effect.pr_link === null ? {} : { prLink: effect.pr_link }),
      }),
  ...outcome,
  attempt: attemptOf(effect),
  at: now.toISOString(),
});

/** When a job or message was last sent, or else planned: what identifies an attempt. */
export const attemptOf = ({ submitted_at, planned_at }: Pick<Job, 'submitted_at' | 'planned_at'>): string =>
  (submitted_at ?? planned_at).toISOString();
