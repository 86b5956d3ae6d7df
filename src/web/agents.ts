import { readJobsWithEffects } from '../agents/job-effects.js';
import { isRemoteJob, openMessage } from '../agents/jobs.js';
import { lateJobs, OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { isInReview, skippedNow } from '../agents/plan.js';
import { MAX_PROMPT_LENGTH } from '../agents/prompt.js';
import { reasonWords } from '../agents/reasons.js';
import { nextScheduled } from '../config/cron.js';
import { dayOf } from '../day.js';
import { messageOf } from '../errors.js';
import { howToLook, lateWords } from '../print/jobs.js';
import { mergedIntoAnotherBranch } from '../reports/jobs.js';
import type { Job } from '../state/jobs.js';
import { readMessages } from '../state/messages.js';
import { notesOf } from '../state/decisions.js';
import { WAYS, waysToSettle } from '../steps/settle-job.js';
import type { SiteRequest } from './request.js';

/** The stages of a job, by title; it is in the first that fits. */
const STAGES = Object.entries<(job: ShownJob) => boolean>({
  'Outcome unknown': ({ isLost }) => isLost,
  'In progress': ({ merged_on, state }) =>
    merged_on === null && ['planned', 'sending', 'active'].includes(state),
  'To check': ({ unclear }) => unclear !== null,
  'To review': isInReview,
  Merged: ({ merged_on }) => merged_on !== null,
  'Ended without a merge': () => true,
});
/** The stages in which people have something to do, the first that they look for first. */
const TASKS = ['To review', 'Outcome unknown', 'To check'];
type ShownJob = Job & { readonly isLost: boolean; readonly unclear: string | null };

const MOST_LEFT_OUT = 100;
/** Jobs that are over; the others can be opened. */
const RECENT = 4;

/** The pages from flagged to merged, each job in one stage. */
export async function agents(request: SiteRequest): Promise<object> {
  const { reader, project, now, isSending } = request;
  const { settings } = request.workspace;
  const jobs = await readJobsWithEffects(reader.state, reader, project.id);
  const messages = readMessages(reader.state, project.id);
  const late = new Map(lateJobs(jobs, messages, now).map((job) => [job.id, lateWords(job)]));
  const shown = jobs.map((job) => {
    const own = messages.filter((message) => message.job === job.id);
    const message = openMessage(own);
    const open = message ?? job;
    const ways = waysToSettle({ job, messages: own });
    return {
      ...job,
      look: howToLook(job),
      unclear: unclearWords(job),
      late: late.get(job.id) ?? null,
      /** When it came to its state, or was planned. */
      since: job.merged_on ?? dayOf(job.ended_at ?? job.planned_at),
      messages: own,
      canMessage: isRemoteJob(job) && own.every(({ state }) => !OPEN_MESSAGE_STATES.has(state)),
      isMessage: message !== undefined,
      isLost: open.state === 'unknown',
      attempt: open.attempt ?? 0,
      /** Of a job with a pull request, the id on the platform is known. */
      can: Object.fromEntries(
        WAYS.map((way) => [
          way,
          ways.includes(way) && (way !== 'sent' || message !== undefined || job.pr_link === null),
        ]),
      ),
      canSettle: ways.length > 0,
      isAtHand: open.state === 'unknown' || isInReview(job) || late.has(job.id),
    };
  });
  const stageOf = (job: ShownJob) => STAGES.find(([, isIn]) => isIn(job))?.[0];
  const stages = STAGES.map(([title], index) => {
    const own = shown.filter((job) => stageOf(job) === title);
    const most = ['Merged', 'Ended without a merge'].includes(title) ? RECENT : own.length;
    // Of those to review, the ones that have been waiting longest come first.
    const jobs = title === 'To review' ? own.toReversed() : own;
    return {
      id: `stage-${index}`,
      title,
      count: own.length,
      jobs: jobs.slice(0, most),
      more: jobs.slice(most),
    };
  });
  const isTask = ({ title }: (typeof stages)[number]) => TASKS.includes(title);
  return {
    ...(await proposalsOf(request)),
    notes: notesOf(reader.state, project.id).toReversed(),
    tasks: TASKS.flatMap((title) => stages.filter((stage) => stage.title === title)),
    otherStages: stages.filter((stage) => !isTask(stage)),
    /** When `start` creates jobs for flagged pages that nobody approved. */
    nextJobsAt: nextScheduled(settings.schedule.improve, settings.schedule.timezone, now),
    timezone: settings.schedule.timezone,
    waits: isSending,
    today: dayOf(now),
    settings,
    maxPromptLength: MAX_PROMPT_LENGTH,
    draft: null,
    answer: null,
  };
}

/** Why it is not known whether a job's pull request is merged; null if it is known, or there is none. */
function unclearWords({ pr_link, merged_on, closed_on, merged_into, pull_request_problem }: Job) {
  if (pr_link === null || merged_on !== null || closed_on !== null) return null;
  return merged_into === null ? pull_request_problem : mergedIntoAnotherBranch(merged_into);
}

/** The flagged pages, those up next, and those left out with the reason: first those that a person can bring back. */
export async function proposalsOf({ reader, project, proposals, now, query }: SiteRequest) {
  const skipped = skippedNow(reader.state, project.id, now).map(({ path, why }) => ({
    path,
    code: why.code,
    why: reasonWords(why),
  }));
  const none = { proposed: [], next: [], nextCount: 0, room: '', leftOut: [] };
  const { leftOut, ...found } = await proposals.of(reader, project, now, query.path).then(
    (found) => ({ ...found, problem: null }),
    (error: unknown) => ({ ...none, problem: messageOf(error) }),
  );
  const others = leftOut.filter(({ path }) => !skipped.some((skip) => skip.path === path));
  const isRejected = ({ code }: (typeof skipped)[number]) => code === 'rejected';
  const all = [...skipped, ...others.filter(isRejected), ...others.filter((page) => !isRejected(page))];
  return { ...found, leftOut: all.slice(0, MOST_LEFT_OUT), leftOutCount: all.length };
}
