import type { AgentJob } from '../api/schema.js';
import type { Entry, Outcome } from '../warehouse/effect.js';
import { evidenceRow } from './select.js';
import type { FailedOutcome } from './lifecycle.js';
import type { Job } from './ledger.js';
import type { Message } from './messages.js';

/** The effects journal's record of a job, written before it is sent. */
export const jobIntent = (job: Job) => ({
  effect: 'job' as const,
  ...{ ref: job.reference, project: job.project, path: job.path },
  ...{ plannedAt: job.planned_at.toISOString(), reason: job.reason },
  evidence: evidenceRow.parse(job),
  prompt: job.prompt,
});

/** The effects journal's record of a follow-up message, written before it is sent. */
export const messageIntent = (message: Message) => ({
  effect: 'message' as const,
  ...{ ref: message.reference, project: message.project, path: message.path, job: message.jobReference },
  ...{ plannedAt: message.planned_at.toISOString(), origin: message.origin, prompt: message.prompt },
});

/** The journal's record of what the platform accepted. */
export const sentAs = ({ id, status, prLink }: AgentJob): Outcome => ({
  ...{ event: 'sent', remoteId: id, remoteStatus: status },
  ...(prLink == null ? {} : { prLink }),
});

export const EVENT_OF: Readonly<Record<FailedOutcome, Outcome['event']>> = {
  'not-done': 'not-sent',
  refused: 'refused',
  'outcome-unknown': 'unknown',
};

/** A journal entry for the last attempt at a job or message. */
export const entryAbout = (effect: Job | Message, outcome: Outcome, now: Date): Entry => ({
  ...('jobReference' in effect
    ? messageIntent(effect)
    : { ...jobIntent(effect), ...(effect.remote_id === null ? {} : { remoteId: effect.remote_id }) }),
  ...outcome,
  attempt: (effect.submitted_at ?? effect.planned_at).toISOString(),
  at: now.toISOString(),
});
