import { planJob, referenceOf } from '../agents/jobs.js';
import { OPEN_STATES } from '../agents/lifecycle.js';
import { awaitedRoom, type ImprovePlan, planImprovement } from '../agents/plan.js';
import { type Room, reasonWords, reasonOfSkip, storedReason } from '../agents/reasons.js';
import { composePrompt, type Proposal, proposalOf, proposedDigest } from '../agents/prompt.js';
import { noPageForJobs, type Ranking, unknownPage } from '../agents/ranking.js';
import type { ProjectSettings } from '../config/schema.js';
import type { Reader } from '../history/duckdb.js';
import { pageOf } from '../page.js';
import { evidenceRow, type Job, readJobs } from '../state/jobs.js';
import type { State } from '../state/state.js';
import type { WorkspaceView } from './step.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { inSequence } from '../format/days.js';
import { forgetLeftOut, forgetSkip, leaveOut, readSkips, recordSkip } from '../state/decisions.js';

/** How the job of a page is planned. */
interface Planning {
  readonly workspace: Pick<WorkspaceView, 'workspaceDir'>;
  /** Whether a person approved the page. */
  readonly isApproved: boolean;
  readonly now: Date;
}

/** In a transaction: plans the job of a page. Returns its number. */
export function planPageJob(
  state: State,
  project: string,
  { path, why, evidence, instruction }: Proposal,
  { workspace, isApproved, now }: Planning,
): number {
  const reason = reasonWords(why);
  const reference = referenceOf(project, path, now);
  const prompt = composePrompt({ project, path, reason, reference }, instruction, workspace);
  return planJob(state, {
    reference,
    project,
    path,
    is_approved: isApproved,
    reason,
    prompt,
    planned_at: now,
    ...evidence,
  });
}

/** An approved page. */
export interface Approval {
  /** The page, at any of its addresses. */
  readonly path: string;
  /** The digest of the proposal that was shown; undefined if none was. */
  readonly digest?: string | undefined;
  /** An edited instruction that replaces the template's. */
  readonly instruction?: string | undefined;
}

/** The outcome of an approval: the number of the page's job, and the limit that it waits for; or why there is none. */
export type Approved = { readonly path: string } & (
  { readonly job: number; readonly waitsFor: Room | undefined } | { readonly refusal: string }
);

interface Approving {
  readonly reader: Reader;
  readonly state: State;
  readonly workspace: Pick<WorkspaceView, 'settings' | 'workspaceDir'>;
  readonly ranking: Ranking;
  readonly now: Date;
}

/**
 * Plans jobs for individually approved pages; the next worker sends them, within the same limits as those of
 * `improveStep`. So an approved page that there is no room for comes next. A page gets no job if it does not qualify, or
 * if its prompt is no longer the one that was shown. Who approves what someone else has just approved gets the same job.
 */
export async function approvePages(
  { reader, state, workspace, ranking, now }: Approving,
  { id: project }: ProjectSettings,
  approvals: readonly Approval[],
): Promise<Approved[]> {
  const rules = workspace.settings.improve;
  const byPath = new Map<string, Approval>();
  for (const approval of approvals) byPath.set(pageOf(approval.path), approval);
  const only = [...byPath.keys()];
  const unknown = new Map<string, string | undefined>();
  for (const path of only)
    if (!ranking.candidates.some((page) => page.path === path))
      unknown.set(path, await noPageForJobs(reader, project, path));
  return state.transaction(() => {
    const plan = planImprovement(state, project, rules, ranking, { now, only });
    const before = readJobs(state, project);
    const answers = [...byPath].map(([path, approval]) => {
      const job = before.find((one) => pageOf(one.path) === path && isThisApproval(one, approval, workspace));
      if (job !== undefined) return { path, job: job.id };
      const refusal = unknown.get(path);
      if (refusal !== undefined) return { path, refusal };
      return approvePage(state, project, plan, { ...approval, path }, { workspace, isApproved: true, now });
    });
    const jobs = readJobs(state, project);
    return answers.map((answer): Approved =>
      'job' in answer ? { ...answer, waitsFor: awaitedRoom(jobs, rules, answer.job, now) } : answer,
    );
  });
}

/** Whether an open job comes from the same approval: of the same page, with the same prompt. */
function isThisApproval(
  { is_approved, state, project, path, reason, reference, prompt }: Job,
  { digest, instruction }: Approval,
  workspace: Planning['workspace'],
): boolean {
  if (!is_approved || !OPEN_STATES.has(state) || digest === undefined) return false;
  return instruction === undefined
    ? proposedDigest(prompt, reference) === digest
    : composePrompt({ project, path, reason, reference }, instruction, workspace) === prompt;
}

function approvePage(
  state: State,
  project: string,
  { flagged, next, leftOut }: ImprovePlan,
  { path, digest, instruction }: Approval,
  planning: Planning,
): { readonly path: string } & ({ readonly job: number } | { readonly refusal: string }) {
  const isThis = (page: { readonly path: string }) => page.path === path;
  const page = [...flagged, ...next].find(isThis);
  if (page === undefined) {
    const why = leftOut.find(isThis)?.why;
    if (why === undefined) throw new Error(`${path} was not considered`);
    return { path, refusal: reasonWords(why) };
  }
  const proposal = proposalOf(project, page, planning.workspace);
  if (digest !== undefined && digest !== proposal.digest)
    return { path, refusal: `its prompt changed since ${digest} was shown: review it again` };
  if (instruction?.trim() === '') return { path, refusal: 'the prompt is empty' };
  const approved = {
    ...proposal,
    evidence: evidenceRow.parse(proposal.evidence),
    instruction: instruction ?? proposal.instruction,
  };
  return { path, job: planPageJob(state, project, approved, planning) };
}

/** Skips pages, each named by any of its addresses, until a day, or until it is undone. Throws a `ConfigurationError` before any is skipped. */
export async function skipPages(
  { reader, state }: { readonly reader: Reader; readonly state: State },
  { id: project }: ProjectSettings,
  addresses: readonly string[],
  { now, until }: { readonly now: Date; readonly until: Day | null },
): Promise<void> {
  const paths = addresses.map(pageOf);
  if (until !== null && until <= dayOf(now))
    throw new ConfigurationError(
      `A page cannot be skipped until ${until}: today is ${dayOf(now)} (UTC). Nothing was changed.`,
    );
  for (const path of paths) {
    const unknown = await unknownPage(reader, project, path);
    if (unknown !== undefined) throw new ConfigurationError(`Cannot skip ${path}: ${unknown}`);
  }
  await state.transaction(() => {
    for (const path of paths) {
      recordSkip(state, { project, path }, now, until);
      leaveOut(state, { project, path }, storedReason(reasonOfSkip(until)));
    }
  });
}

/** Ends the skips of pages. Throws a `ConfigurationError` before any is ended. */
export async function unskipPages(
  state: State,
  { id: project }: ProjectSettings,
  addresses: readonly string[],
  now: Date,
): Promise<void> {
  const paths = addresses.map(pageOf);
  await state.transaction(() => {
    const skipped = readSkips(state, project, now).map(({ path }) => path);
    const other = paths.find((path) => !skipped.includes(path));
    if (other !== undefined)
      throw new ConfigurationError(
        `${other} is not skipped${skipped.length === 0 ? '; no page is' : `, but ${inSequence(skipped)}`}. Nothing was changed.`,
      );
    // The next selection considers them again.
    for (const path of paths) {
      forgetSkip(state, { project, path });
      forgetLeftOut(state, { project, path }, 'skipped');
    }
  });
}
