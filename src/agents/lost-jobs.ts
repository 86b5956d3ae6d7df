import { min, subMinutes } from 'date-fns';
import type { EffectsJournal } from '../effects/journal.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { CodeHost } from './code-host.js';
import type { PullRequest } from './dialects.js';
import { changeJob, type Job } from './ledger.js';
import { quoted } from './prompt.js';
import { entryAbout } from './intents.js';

/** Reads the pull requests of `pullRequests.repository`. */
export interface SettleTask {
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
  readonly codeHost: CodeHost;
  readonly now: () => Date;
  readonly signal?: AbortSignal;
}

const REFERENCE = /Readership reference ([0-9a-f]{12})\b(?:, project ("[^"\n]*"), page ("[^"\n]*"))?/g;

export const referencesIn = (text: string) =>
  [...text.matchAll(REFERENCE)].map(([, reference = '', project, page]) => ({ reference, project, page }));

/** In one round. */
const MAX_SETTLED = 20;

/** Clocks differ; a pull request cannot be older than the attempt to create its job. */
const CLOCKS_DIFFER_MINUTES = 10;

/**
 * Settles jobs whose reply was lost by their pull requests. A job is settled only if exactly one
 * pull request since then has its reference, and it is about the page. All others are left to a person.
 */
export async function settleLostJobs(
  task: SettleTask,
  jobs: readonly Job[],
  pages: ReadonlyMap<string, unknown>,
): Promise<{ readonly settled: readonly Job[]; readonly isDone: boolean }> {
  const lost = jobs.filter(({ state }) => state === 'unconfirmed');
  if (lost.length === 0) return { settled: [], isDone: true };
  const sent = min(lost.map(({ submitted_at, planned_at }) => submitted_at ?? planned_at));
  const since = await allSince(task, subMinutes(sent, CLOCKS_DIFFER_MINUTES));
  const settled: Job[] = [];
  const found = lost.flatMap((job) => {
    const pullRequest = pullRequestOf(job, since, jobs);
    return pullRequest === undefined || task.codeHost.addressOf(pullRequest.link) === undefined
      ? []
      : { job, pullRequest };
  });
  for (const { job, pullRequest } of found.slice(0, MAX_SETTLED)) {
    const paths = await task.codeHost.pagesOf(pullRequest, pages, task.signal);
    const isNamed = referencesIn(pullRequest.text)[0]?.page !== undefined;
    if (!(paths.includes(job.path) || (paths.length === 0 && isNamed))) continue;
    const { link: prLink } = pullRequest;
    const now = task.now();
    await task.journal.append([entryAbout({ job }, { event: 'sent', prLink, note: FOUND }, now)]);
    const change = {
      event: 'found-pull-request',
      now,
      cause: `${FOUND}: ${prLink}`,
      remote: { prLink },
    } as const;
    settled.push(await changeJob(task.warehouse, job, change));
  }
  return { settled, isDone: found.length <= MAX_SETTLED };
}

const FOUND = 'found by its reference in a pull request';

/** The only pull request with the reference of a job, if that of no other job is in it, and its page and age fit. */
function pullRequestOf(
  job: Job,
  pullRequests: readonly PullRequest[],
  jobs: readonly Job[],
): PullRequest | undefined {
  const [found, ...others] = pullRequests.filter(({ text }) => text.includes(job.reference));
  if (found === undefined || others.length > 0) return undefined;
  const lines = referencesIn(found.text);
  const isRight = ({ reference, project, page }: (typeof lines)[number]) =>
    reference === job.reference &&
    (page === undefined || (page === quoted(job.path) && project === quoted(job.project)));
  const isTaken = jobs.some(({ pr_link }) => pr_link === found.link);
  const isOlder = found.createdAt < subMinutes(job.submitted_at ?? job.planned_at, CLOCKS_DIFFER_MINUTES);
  return lines.length > 0 && lines.every(isRight) && !isTaken && !isOlder ? found : undefined;
}

/** All pull requests that changed since a moment; none if there are too many to be sure that a reference is unique. */
async function allSince({ codeHost, signal }: SettleTask, since: Date): Promise<readonly PullRequest[]> {
  const all = new Map<string, PullRequest>();
  let isComplete = false;
  for await (const { pullRequests, next } of codeHost.changedSince(since, signal)) {
    for (const pullRequest of pullRequests) all.set(pullRequest.link, pullRequest);
    isComplete = next === undefined;
  }
  return isComplete ? [...all.values()] : [];
}
