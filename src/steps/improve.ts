import { readSkips, recordChoices, skipPage, unknownPage, unskipPage } from '../agents/choices.js';
import { readJobs, referenceOf } from '../agents/job.js';
import { planJob } from '../agents/ledger.js';
import { type ImprovePlan, planImprovement } from '../agents/plan.js';
import { composePrompt, type Proposal, proposalOf } from '../agents/prompt.js';
import { reasonWords } from '../agents/reasons.js';
import { limitWords } from '../agents/room.js';
import { type IsListed, readSitemap } from '../agents/sitemap.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { inSequence } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { pageOf } from '../page.js';
import type { Reader } from '../warehouse/query.js';
import { loadNotes } from './notes.js';
import type { Parts, Using } from './parts.js';
import { type Sent, submitWaiting } from './poll.js';
import { byBothClocks, eachProject, type StepResult, withOutage } from './step.js';

/** What improving a project did. In `plan` mode nothing is sent. */
export interface ProjectImprovement extends Sent {
  readonly project: ProjectSettings;
  readonly plan: ImprovePlan;
}

/** Chooses the pages for agents and, with `apply`, creates their jobs if anything may be sent now. */
export async function improveStep(
  given: Parts,
  { apply: isWanted }: { readonly apply: boolean },
): Promise<StepResult<ProjectImprovement[]>> {
  const parts = await byBothClocks(given);
  const { workspace, effects, session } = parts;
  // Publishing reports what is wrong with them.
  await loadNotes(parts);
  const refusal = isWanted ? await effects.journal.refusal() : undefined;
  const apply = isWanted && refusal === undefined;
  const listedOf = await readSitemap(workspace.settings.improve.sitemap, session.signal);
  const { results: detail, errors } = await eachProject(parts, (project) =>
    improveProject(parts, project, { isListed: listedOf(project.siteUrl), apply }),
  );
  const sent = detail.reduce((sum, outcome) => sum + outcome.sent, 0);
  const flagged = detail.flatMap(({ plan }) => plan.flagged).length;
  const summary = apply
    ? `${counted(sent, 'prompt')} sent`
    : `${counted(flagged, 'page')} flagged, nothing sent`;
  return withOutage({ detail, summary }, [...errors, ...detail.map(({ stopped }) => stopped), refusal]);
}

async function improveProject(
  parts: Parts,
  project: ProjectSettings,
  { isListed, apply }: { readonly isListed: IsListed | undefined; readonly apply: boolean },
): Promise<ProjectImprovement> {
  const { workspace, store, session } = parts;
  const now = session.now();
  const plan = await planImprovement(store, project.id, workspace.settings.improve, { now, isListed });
  if (apply)
    for (const page of plan.flagged) await planPage(parts, project, proposalOf(project.id, page, workspace));
  // Chosen before its jobs were planned, so that reports leave out pages that got one.
  await recordChoices(store, project.id, plan, now);
  const sent = apply ? await submitWaiting(parts, project, 'all') : { created: 0, sent: 0 };
  return { project, plan, ...sent };
}

/** Plans the job of a page; nothing is sent. Returns its number. */
function planPage(
  { workspace, store, session }: Using<'workspace' | 'store' | 'session'>,
  { id: project }: ProjectSettings,
  { path, why, evidence, instruction }: Proposal,
): Promise<number> {
  const at = session.now();
  const reason = reasonWords(why);
  const reference = referenceOf(project, path, at);
  const prompt = composePrompt({ project, path, reason, reference }, instruction, workspace);
  return planJob(store, { project, page: { path, reason, evidence }, prompt, now: at });
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

/** The outcome of an approval. */
interface Approved {
  readonly path: string;
  /** The number of its job; undefined when none was planned. */
  readonly id?: number;
  /** Why none was planned. */
  readonly refusal?: string;
}

/**
 * Creates jobs for individually approved pages, within the same limits as `improveStep`. A page
 * gets no job if it is not proposed, or if its prompt is no longer the one that was shown. Returns
 * the outcomes, each with its job as it is then.
 */
export async function approvePages(given: Parts, project: ProjectSettings, approvals: readonly Approval[]) {
  const parts = await byBothClocks(given);
  const { workspace, store, effects, session } = parts;
  const refusal = await effects.journal.refusal();
  if (refusal !== undefined) throw refusal;
  const rules = workspace.settings.improve;
  const isListed = (await readSitemap(rules.sitemap, session.signal))(project.siteUrl);
  const byPath = new Map<string, Approval>();
  for (const approval of approvals) byPath.set(pageOf(approval.path), approval);
  const state = { now: session.now(), isListed, only: [...byPath.keys()] };
  const plan = await planImprovement(store, project.id, rules, state);
  const answers: Approved[] = [];
  for (const [path, { digest, instruction }] of byPath) {
    const page = plan.flagged.find((candidate) => candidate.path === path);
    if (page === undefined) {
      const why = plan.leftOut.find((candidate) => candidate.path === path)?.why;
      const unknown = await unknownPage(store, project.id, path);
      answers.push({ path, refusal: unknown ?? (why && reasonWords(why)) ?? noRoom(plan) });
      continue;
    }
    const proposal = proposalOf(project.id, page, workspace);
    if (digest !== undefined && digest !== proposal.digest)
      answers.push({ path, refusal: `its prompt changed since ${digest} was shown: review it again` });
    else if (instruction?.trim() === '') answers.push({ path, refusal: 'the prompt is empty' });
    else
      answers.push({
        path,
        id: await planPage(parts, project, {
          ...proposal,
          instruction: instruction ?? proposal.instruction,
        }),
      });
  }
  const planned = answers.filter(({ id }) => id !== undefined).length;
  const { sent, stopped }: Partial<Sent> = planned === 0 ? {} : await submitWaiting(parts, project, 'all');
  const summary = `${planned} of ${byPath.size} approved pages got a job, ${counted(sent ?? 0, 'prompt')} sent`;
  const jobs = await readJobs(store, project.id);
  const detail = answers.map(({ id, ...answer }) => ({ ...answer, job: jobs.find((job) => job.id === id) }));
  return withOutage({ detail, summary }, [stopped]);
}

const noRoom = ({ toPlan }: ImprovePlan): string => `no room for another job: ${limitWords(toPlan)}`;

/** Skips pages, each named by any of its addresses, until a day, or until it is undone. Throws a `ConfigurationError` before any is skipped. */
export async function skipPages(
  { store, session: { now } }: Using<'store' | 'session'>,
  { id: project }: ProjectSettings,
  addresses: readonly string[],
  until: Day | null,
): Promise<void> {
  const paths = addresses.map(pageOf);
  if (until !== null && until <= dayOf(now()))
    throw new ConfigurationError(
      `A page cannot be skipped until ${until}: today is ${dayOf(now())} (UTC). Nothing was changed.`,
    );
  await expectPages(store, project, paths, 'Cannot skip');
  for (const path of paths) await skipPage(store, { project, path }, { now: now(), until });
}

/** Throws a `ConfigurationError` unless the history has all these pages. */
async function expectPages(reader: Reader, project: string, paths: readonly string[], what: string) {
  for (const path of paths) {
    const unknown = await unknownPage(reader, project, path);
    if (unknown !== undefined) throw new ConfigurationError(`${what} ${path}: ${unknown}`);
  }
}

/** Ends the skips of pages. Throws a `ConfigurationError` before any is ended. */
export async function unskipPages(
  { store, session: { now } }: Using<'store' | 'session'>,
  { id: project }: ProjectSettings,
  addresses: readonly string[],
): Promise<void> {
  const paths = addresses.map(pageOf);
  const skipped = (await readSkips(store, project, now())).map(({ path }) => path);
  const other = paths.find((path) => !skipped.includes(path));
  if (other !== undefined)
    throw new ConfigurationError(
      `${other} is not skipped${skipped.length === 0 ? '; no page is' : `, but ${inSequence(skipped)}`}. Nothing was changed.`,
    );
  for (const path of paths) await unskipPage(store, { project, path });
}
