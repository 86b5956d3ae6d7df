import type { AgentJob } from '../api/schema.js';
import type { Entry, Outcome } from '../warehouse/effect.js';
import { evidenceRow } from './select.js';
import type { FailedOutcome } from './lifecycle.js';
import type { Job } from './ledger.js';
import type { Message } from './messages.js';

/** A job as the effects journal has it, before it is sent. */
export const jobIntent = (job: Job) => ({
  effect: 'job' as const,
  ...{ ref: job.reference, project: job.project, path: job.path },
  ...{ plannedAt: job.planned_at.toISOString(), reason: job.reason },
  evidence: evidenceRow.parse(job),
  prompt: job.prompt,
});

/** A follow-up message as the effects journal has it, before it is sent. */
export const messageIntent = (message: Message) => ({
  effect: 'message' as const,
  ...{ ref: message.reference, project: message.project, path: message.path, job: message.jobReference },
  ...{ plannedAt: message.planned_at.toISOString(), origin: message.origin, prompt: message.prompt },
});

/** What the platform took, as the journal has it. */
export const sentAs = ({ id, status, prLink }: AgentJob): Outcome => ({
  ...{ event: 'sent', remoteId: id, remoteStatus: status },
  ...(prLink == null ? {} : { prLink }),
});

export const EVENT_OF: Readonly<Record<FailedOutcome, Outcome['event']>> = {
  'not-done': 'not-sent',
  refused: 'refused',
  'outcome-unknown': 'unknown',
};

/** An entry about the last attempt of a job or a message. */
export const entryAbout = (effect: Job | Message, outcome: Outcome, now: Date): Entry => ({
  ...('jobReference' in effect
    ? messageIntent(effect)
    : { ...jobIntent(effect), ...(effect.remote_id === null ? {} : { remoteId: effect.remote_id }) }),
  ...outcome,
  attempt: (effect.submitted_at ?? effect.planned_at).toISOString(),
  at: now.toISOString(),
});
