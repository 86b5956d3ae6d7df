import type { LateJob } from '../agents/lifecycle.js';
import { effectWords, type JobEffect } from '../agents/job-effects.js';
import { ENDED_STATUSES } from '../api/schema.js';
import { dayOf } from '../day.js';
import { duration, longDay, moment } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import { escapeLines, escapeUnsafe, indented, section, shortened, shownPath } from '../format/text.js';
import { mergedIntoAnotherBranch, pullRequestNumber } from '../reports/jobs.js';
import type { Unsettled } from '../service/status.js';
import type { Job, RecordedChange } from '../state/jobs.js';
import type { JobMessage } from '../state/messages.js';
import type { TableColumn } from '../terminal/table.js';

/** Maximum length of notes in a list. */
const NOTE_LENGTH = 48;

const COLUMNS: readonly TableColumn[] = [
  { head: 'job', align: 'right' },
  { head: 'state', align: 'left' },
  { head: 'page', align: 'left', shrinks: true },
  { head: 'outcome', align: 'left' },
];

/**
 * Jobs as a table; the first line names the columns. If it is too wide, pull requests have a number
 * instead of an address; a shortened address could not be opened, and `jobs show` has it.
 */
export async function jobLines(jobs: readonly Job[], width: number): Promise<string[]> {
  // Loading what measures text takes long, and most commands print no table.
  const { alignedLines } = await import('../terminal/table.js');
  const table = (all: readonly Job[], most: number) => {
    const cellsOf = (job: Job) =>
      [String(job.id), stateOf(job), job.path, shortOutcome(job)].map(escapeUnsafe);
    return alignedLines(COLUMNS, all.map(cellsOf), most);
  };
  const whole = table(jobs, Infinity);
  if (table(jobs, width).join() === whole.join()) return whole;
  const numbered = jobs.map((job) => ({ ...job, pr_link: pullRequestNumber(job.pr_link) ?? job.pr_link }));
  return table(numbered, width);
}

/** A job on one line, for progress. */
export const jobLine = (job: Job): string =>
  escapeUnsafe(`job ${job.id}  ${stateOf(job)}  ${job.path}  ${outcomeOf(job)}`.trimEnd());

/** How to find out whether a job of unknown outcome exists. */
export const howToLook = ({ reference }: Job): string =>
  `Its prompt contains the reference ${reference}: search for it in the platform's jobs and in the descriptions of pull requests.`;

/** Since when a late job has been active, as a phrase, and how long such jobs usually take. */
export const lateWords = ({ since, usualMs }: LateJob): string =>
  `active since ${longDay(dayOf(since))}${usualMs === null ? '' : `; such jobs usually take ${duration(usualMs)}`}`;

/**
 * Jobs and messages whose replies were lost, and jobs that take too long, with the commands that settle them. `jobs show`
 * says how to find out.
 */
export const unsettledPromptLines = ({
  unknownJobs,
  unknownMessages,
  lateJobs,
}: Pick<Unsettled, 'unknownJobs' | 'unknownMessages' | 'lateJobs'>): string[] => [
  ...unknownJobs.map(
    ({ id, path }) =>
      `job ${id} (${shownPath(path)}) may or may not exist: readership jobs settle ${id} ${NEXT.unknown}`,
  ),
  ...unknownMessages.map(
    ({ id, job }) =>
      `message ${id} to job ${job} may or may not have arrived: readership jobs settle ${job} --sent, or --not-sent`,
  ),
  ...lateJobs.map(
    (job) =>
      `job ${job.id} (${shownPath(job.path)}) has been ${lateWords(job)}. Look at it on the platform; if it is over: readership jobs settle ${job.id} --ended`,
  ),
];

/** Statuses that a follow-up has ended: the job is active again. */
const PAST: ReadonlySet<string> = new Set(ENDED_STATUSES);

/** The state, with the platform's status if it differs: `active (running)`. */
const stateOf = ({ state, remote_status }: Job): string =>
  state === 'active' && remote_status !== null && remote_status !== state && !PAST.has(remote_status)
    ? `${state} (${remote_status})`
    : state;

/** `jobs show` has the full note. */
const shortOutcome = (job: Job): string =>
  job.pr_link === null ? shortened(outcomeOf(job), NOTE_LENGTH) : outcomeOf(job);

const outcomeOf = (job: Job): string => {
  const { state, pr_link, merged_on, closed_on, merged_into, pull_request_problem, note } = job;
  if (merged_on !== null) return pr_link === null ? 'committed directly' : `${pr_link} merged`;
  if (pr_link === null) return note ?? (state === 'completed' ? 'ended without changes' : '');
  if (closed_on !== null) return `${pr_link} closed`;
  if (merged_into !== null) return `${pr_link} merged into ${merged_into}`;
  return pull_request_problem === null ? pr_link : `${pr_link} not looked up`;
};

/** Everything known about a job. */
interface JobDetail {
  readonly job: Job;
  readonly messages: readonly JobMessage[];
  readonly changes: readonly RecordedChange[];
  /** The views before and after its merge, if it was merged. */
  readonly effect: JobEffect | undefined;
}

export const describeJob = ({ job, messages, changes, effect }: JobDetail): string =>
  escapeLines(
    [
      `Job ${job.id}`,
      ...indented(factsOf(job, effect).map(([name, value]) => name.padEnd(17) + value)),
      ...section('Weekly views that the choice is based on', job.weeks.map(weekLine)),
      ...section('Messages', messages.flatMap(messageLines)),
      ...section('History', changes.map(changeLine)),
      ...section('Prompt', job.prompt.trimEnd().split('\n')),
    ].join('\n'),
  );

/** What a person can do about a job in some states. */
const NEXT: Readonly<Partial<Record<Job['state'], string>>> = {
  planned: '--ended, if it should not be sent',
  active: '--ended, if it is over on the platform',
  unknown: '--sent REMOTE_ID, or --not-sent',
};

function factsOf(job: Job, effect?: JobEffect): [name: string, value: string][] {
  const { remote_id, remote_status, merged_on, closed_on, merged_into, pull_request_problem } = job;
  const next = NEXT[job.state];
  const facts: [string, string | null][] = [
    ['page', job.path],
    ['state', stateOf(job)],
    ['reference', job.reference],
    ['pull request', job.pr_link],
    ['merged', merged_on && longDay(merged_on)],
    ['closed', merged_on === null && closed_on !== null ? `unmerged, on ${longDay(closed_on)}` : null],
    [
      'not merged yet',
      merged_on === null && merged_into !== null ? mergedIntoAnotherBranch(merged_into) : null,
    ],
    ['not looked up', merged_on === null ? pull_request_problem : null],
    ['after the merge', effect === undefined ? null : effectWords(effect)],
    ['why', job.reason],
    ['on the platform', remote_id && `${remote_id} (${remote_status ?? 'status unknown'})`],
    ['note', job.note],
    ['how to check', job.state === 'unknown' ? howToLook(job) : null],
    ['to record it', next === undefined ? null : `readership jobs settle ${job.id} ${next}`],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, escapeUnsafe(value)]]));
}

const weekLine = ({ week, human, ai }: Job['weeks'][number]): string =>
  `${week}  ${thousands(human).padStart(9)} by people  ${thousands(ai).padStart(9)} by AI`;

const messageLines = ({ id, state, origin, prompt, note }: JobMessage): string[] => [
  `Message ${id}, ${state}${origin === 'typed' ? '' : `, by ${origin}`}${note === null ? '' : `: ${note}`}`,
  ...indented(prompt.trimEnd().split('\n')),
];

const changeLine = ({ changed_at, message, to_state, cause }: RecordedChange): string =>
  `${moment(changed_at)}  ${(message === null ? to_state : `message ${message} ${to_state}`).padEnd(20)}  ${cause}`;
