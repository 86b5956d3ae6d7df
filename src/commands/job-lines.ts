import type { Job, Transition } from '../agents/ledger.js';
import { moment } from '../format/days.js';
import { plainText } from '../terminal/plain-text.js';

/** A job in a line, for lists. */
export function jobLine(job: Job): string {
  const end = job.pr_link ?? (job.state === 'completed' ? 'no change was needed' : (job.note ?? ''));
  return plainText(`${String(job.id).padStart(3)}  ${job.state.padEnd(11)}  ${job.path}  ${end}`.trimEnd());
}

/** A job with all that is known of it. */
export function describeJob(job: Job, transitions: readonly Transition[]): string {
  const facts: [string, string | null][] = [
    ['page', job.path],
    ['state', job.state],
    ['pull request', job.pr_link],
    ['why', job.reason],
    [
      'on the platform',
      job.remote_id === null ? null : `${job.remote_id} (${job.remote_status ?? 'status unknown'})`,
    ],
    ['note', job.note],
  ];
  return plainText(
    [
      `Job ${job.id}`,
      ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(16)}${value}`])),
      '',
      'History',
      ...transitions.map(
        ({ changed_at, to_state, cause }) => `  ${moment(changed_at)}  ${to_state.padEnd(11)}  ${cause}`,
      ),
      '',
      'Prompt',
      ...job.prompt
        .trimEnd()
        .split('\n')
        .map((line) => `  ${line}`),
    ].join('\n'),
  );
}
