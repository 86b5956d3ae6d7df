import type { Job } from '../agents/ledger.js';
import { planImprovement, readSkips, skipPage, unknownPage, unskipPage } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import { readSitemap } from '../agents/sitemap.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { inSequence } from '../format/days.js';
import { type StepContext, type StepResult, withOutage } from './step.js';
import { planPage, submitWaiting } from './improve.js';

/** An approved page. */
export interface Approval {
  readonly path: string;
  /** The digest of the proposal that was shown; undefined if none was. */
  readonly digest?: string | undefined;
  /** An edited instruction that replaces the template's. */
  readonly instruction?: string | undefined;
}

/** The outcome of an approval. */
export interface Approved {
  readonly path: string;
  /** The number of its job; undefined when none was planned. */
  readonly job?: number;
  /** Why none was planned. */
  readonly refusal?: string;
}

/**
 * Creates jobs for individually approved pages, within the same limits as `improveStep`. A page
 * gets no job if it is not proposed, or if its prompt is no longer the one that was shown.
 */
export async function approvePages(
  context: StepContext,
  project: ProjectSettings,
  approvals: readonly Approval[],
): Promise<StepResult<{ readonly answers: readonly Approved[]; readonly submitted: readonly Job[] }>> {
  const { settings, warehouse, workspaceDir, now, signal } = context;
  const { sitemap, maxPromptLength } = settings.improve;
  const isListed = (await readSitemap(sitemap, signal))(project.siteUrl);
  const byPath = new Map(approvals.map((approval) => [approval.path, approval]));
  const state = { now: now(), isListed, only: [...byPath.keys()] };
  const plan = await planImprovement(warehouse, project.id, settings.improve, state);
  const answers: Approved[] = [];
  for (const { path, digest, instruction } of byPath.values()) {
    const page = plan.flagged.find((candidate) => candidate.path === path);
    if (page === undefined) {
      const why = plan.leftOut.find((candidate) => candidate.path === path)?.why;
      const unknown = await unknownPage(warehouse, project.id, path);
      answers.push({ path, refusal: unknown ?? (why && wordsOf(why)) ?? 'not proposed' });
      continue;
    }
    const proposal = proposalOf(project.id, page, { workspaceDir, maxPromptLength });
    if (digest !== undefined && digest !== proposal.digest)
      answers.push({ path, refusal: `its prompt changed since ${digest} was shown: review it again` });
    else if (instruction?.trim() === '') answers.push({ path, refusal: 'the prompt is empty' });
    else
      answers.push({
        path,
        job: await planPage(context, project, page, instruction ?? proposal.instruction),
      });
  }
  const planned = answers.filter(({ job }) => job !== undefined).length;
  const { submitted, stopped } =
    planned === 0 ? { submitted: [] } : await submitWaiting(context, project, 'all');
  const summary = `${planned} of ${byPath.size} approved pages got a job, ${submitted.length} prompts sent`;
  const detail = { answers, submitted };
  return withOutage({ detail, summary }, stopped === undefined ? [] : [stopped]);
}

/** Skips pages until a day, or until it is undone. Throws a `ConfigurationError` before any is skipped. */
export async function skipPages(
  { warehouse, now }: StepContext,
  { id: project }: ProjectSettings,
  paths: readonly string[],
  until: Day | null,
): Promise<void> {
  if (until !== null && until <= dayOf(now()))
    throw new ConfigurationError(
      `A page cannot be skipped until ${until}: today is ${dayOf(now())} (UTC). Nothing was changed.`,
    );
  for (const path of paths) {
    const unknown = await unknownPage(warehouse, project, path);
    if (unknown !== undefined) throw new ConfigurationError(`Cannot skip ${path}: ${unknown}`);
  }
  for (const path of paths) await skipPage(warehouse, { project, path }, { now: now(), until });
}

/** Ends the skips of pages. Throws a `ConfigurationError` before any is ended. */
export async function unskipPages(
  { warehouse, now }: StepContext,
  { id: project }: ProjectSettings,
  paths: readonly string[],
): Promise<void> {
  const skipped = (await readSkips(warehouse, project, now())).map(({ path }) => path);
  const other = paths.find((path) => !skipped.includes(path));
  if (other !== undefined)
    throw new ConfigurationError(
      `${other} is not skipped${skipped.length === 0 ? '; no page is' : `, but ${inSequence(skipped)}`}. Nothing was changed.`,
    );
  for (const path of paths) await unskipPage(warehouse, { project, path });
}
