import { jobStateWords } from '../agents/jobs.js';
import { OPEN_STATES } from '../agents/lifecycle.js';
import { planImprovement } from '../agents/plan.js';
import { whenRoom } from '../agents/reasons.js';
import { proposalOf } from '../agents/prompt.js';
import { readOtherAddresses, readRanking } from '../agents/ranking.js';
import { readSitemap } from '../agents/sitemap.js';
import { expectSendingPlace, SENT_LATER, withHistory, withState } from '../app/state.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode, LockedError } from '../errors.js';
import { longDay } from '../format/days.js';
import { escapeUnsafe } from '../format/text.js';
import { counted } from '../format/numbers.js';
import { type Job, readJob, readJobs } from '../state/jobs.js';
import type { State } from '../state/state.js';
import { type PagePath, pageOf } from '../page.js';
import { createdWords, improvePlanJson, improvePlanLines } from '../print/improve.js';
import { type Approved, approvePages, skipPages, unskipPages } from '../steps/decide-pages.js';
import { improveStep } from '../steps/improve.js';
import { submitWaiting } from '../steps/poll.js';
import { byBothClocks, withOutage, type WorkspaceView } from '../steps/step.js';
import { aDay, flag, JSON_LOG, PLATFORM_ENVIRONMENT, projectCommand, value } from './command.js';
import { conclude, runSteps } from './steps.js';

type Pages = readonly string[];

/** Pages are skipped until a day, or until that is undone (null). */
type SkipChange = { readonly until: Day | null } | 'undo';

export const improve = projectCommand('improve', {
  summary: 'flag pages for agents; create the jobs with --apply',
  description:
    'Flags the most-read pages without a job: those with the most human and AI views in a typical week, which is the median of the last eight. Without --apply, it creates nothing. With it, each page gets one job, which is recorded before it is sent and never sent twice automatically.',
  options: {
    apply: value<true | Pages>(
      '[pages...]',
      'create the jobs, or only those for these pages; with /page#digest, only if the prompt is the one --verbose showed',
    ),
    skip: value<Pages>('<pages...>', 'do not flag these pages, until --unskip or --until', {
      conflicts: ['apply', 'unskip', 'json'],
    }),
    until: value('<day>', 'with --skip: flag them again from this day on, YYYY-MM-DD', aDay),
    unskip: value<Pages>('<pages...>', 'undo --skip', { conflicts: ['apply', 'json'] }),
    verbose: flag('show the exact prompts, and what is left out'),
    json: flag(`${JSON_LOG}; without --apply, the plan`),
  },
  examples: `
  readership improve --verbose      show the plan and the prompts
  readership improve --apply        create the jobs
  readership improve --apply /quickstart /api/errors        only for these pages
  readership improve --skip /changelog --until 2027-01-01
  readership improve --unskip /changelog`,
  environment: PLATFORM_ENVIRONMENT,
  run: (options, runtime) => {
    const { apply, skip, unskip, until } = options;
    if (until !== undefined && skip === undefined)
      throw new ConfigurationError(
        '--until requires --skip: it sets the day from which the pages may be flagged again.',
      );
    if (skip !== undefined) return changeSkips(options, runtime, skip, { until: until ?? null });
    if (unskip !== undefined) return changeSkips(options, runtime, unskip, 'undo');
    if (apply === undefined) return showPlan(options, runtime);
    return apply === true ? applyAll(options, runtime) : applySome(options, runtime, apply);
  },
});

type ShowOptions = WorkspaceOptions & { readonly verbose?: boolean; readonly json?: boolean };

async function showPlan(
  { verbose = false, json = false, ...options }: ShowOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime, 'optional');
  const { projects, settings } = workspace;
  return withHistory(workspace, async ({ history, state }): Promise<ExitCode> => {
    const { output, signal } = runtime;
    const rules = settings.improve;
    const sitemap = await readSitemap(rules.sitemap, signal);
    const now = runtime.now();
    const shown: object[] = [];
    for (const project of projects) {
      const { id, name } = project;
      const ranking = await readRanking(history, project, rules, { sitemap, now });
      const plan = planImprovement(state, id, rules, ranking, { now });
      // A mistake in a template matters only where prompts are shown.
      const propose = () => plan.flagged.map((page) => proposalOf(id, page, workspace));
      if (json) {
        shown.push(improvePlanJson(id, plan, propose()));
        continue;
      }
      const details = verbose
        ? { proposals: propose(), others: await readOtherAddresses(history, id, now) }
        : undefined;
      const width = output.isTerminal ? output.width : undefined;
      output.words(improvePlanLines({ name, plan, rules, width, details }).join('\n'));
    }
    if (json) output.json(shown);
    return 0;
  });
}

async function applyAll(options: ShowOptions, runtime: Runtime): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { result, outages } = await runSteps('improve', workspace, options, runtime, (runner, parts) =>
    runner.step('improve', () => improveStep(parts, { apply: true })),
  );
  for (const { project, plan, created } of result ?? [])
    runtime.output.data(`${project.name}: ${createdWords(plan, created)}`);
  return conclude(outages, runtime);
}

async function applySome(options: ShowOptions, runtime: Runtime, pages: Pages): Promise<ExitCode> {
  const approvals = pages.map((page) => {
    const [path = '', digest] = page.split('#');
    return { path: pathArgument(path), digest };
  });
  const { output, signal } = runtime;
  const workspace = await readWorkspace(options, runtime);
  const project = onlyProject(workspace);
  // Without its key, nothing could be sent.
  workspace.credentials.apiKeyOf(project);
  const answers = await withHistory(workspace, async ({ history, state }) => {
    await expectSendingPlace(state, workspace);
    const now = runtime.now();
    const rules = workspace.settings.improve;
    const sitemap = await readSitemap(rules.sitemap, signal);
    const ranking = await readRanking(history, project, rules, { sitemap, now });
    return approvePages({ reader: history, state, workspace, ranking, now }, project, approvals);
  });
  const isApproved = answers.some((answer) => 'job' in answer);
  let code: ExitCode = 1;
  try {
    code = isApproved ? await sendApproved(workspace, project, options.json === true, runtime) : 0;
  } finally {
    const whenSent = code === 1 ? 'It is sent by the next run after this problem is solved.' : SENT_LATER;
    await withState(workspace, (state) => {
      for (const answer of answers)
        output.data(escapeUnsafe(`${answer.path}: ${approvedWords(state, answer, whenSent)}`));
    });
  }
  return code === 0 && answers.some((answer) => 'refusal' in answer) ? 1 : code;
}

/** Sends the approved jobs of a project, unless another process works. */
async function sendApproved(
  workspace: Workspace,
  project: ProjectSettings,
  json: boolean,
  runtime: Runtime,
): Promise<ExitCode> {
  try {
    const { outages } = await runSteps(
      'improve',
      workspace,
      { json, maxLockWaitMs: 0 },
      runtime,
      (runner, given) =>
        runner.aside('improve', async () => {
          const { sent, stopped } = await submitWaiting(await byBothClocks(given), project);
          return withOutage({ detail: undefined, summary: `${counted(sent, 'prompt')} sent` }, [stopped]);
        }),
    );
    return conclude(outages, runtime);
  } catch (error) {
    if (error instanceof LockedError) return 0;
    throw error;
  }
}

function approvedWords(state: State, answer: Approved, whenSent: string): string {
  if ('refusal' in answer) return `no job: ${answer.refusal}`;
  const job = readJob(state, answer.job);
  const when = answer.waitsFor === undefined ? whenSent : `It is sent ${whenRoom(answer.waitsFor)}.`;
  if (job?.state === 'planned') return `job ${job.id} is approved. ${when}`;
  return `job ${answer.job} ${job?.remote_id === null ? jobStateWords(job) : 'was created'}`;
}

async function changeSkips(
  options: WorkspaceOptions,
  runtime: Runtime,
  pages: Pages,
  change: SkipChange,
): Promise<ExitCode> {
  const paths = pages.map((page) => pageOf(pathArgument(page)));
  const workspace = await readWorkspace(options, runtime, 'optional');
  return withHistory(workspace, async ({ history, state }): Promise<ExitCode> => {
    const project = onlyProject(workspace);
    const now = runtime.now();
    if (change === 'undo') await unskipPages(state, project, paths, now);
    else await skipPages({ reader: history, state }, project, paths, { now, until: change.until });
    const jobs = readJobs(state, project.id);
    for (const path of paths) {
      const open = jobs.find((job) => pageOf(job.path) === path && OPEN_STATES.has(job.state));
      runtime.output.data(escapeUnsafe(`${path}: ${skipWords(path, change, open)}`));
    }
    return 0;
  });
}

function skipWords(path: PagePath, change: SkipChange, open: Job | undefined): string {
  if (change === 'undo') return 'no longer skipped';
  const until =
    change.until === null
      ? `skipped; to undo: readership improve --unskip ${path}`
      : `skipped until ${longDay(change.until)}`;
  if (open === undefined) return until;
  return `${until}; its job ${open.id}, ${open.state}, continues: readership jobs show ${open.id}`;
}

function pathArgument(path: string): string {
  if (!path.startsWith('/'))
    throw new ConfigurationError(`${path} is not the path of a page, such as /guides/quickstart.`);
  return path;
}

/** The project of the given pages. */
function onlyProject({ projects }: WorkspaceView): ProjectSettings {
  const [project, ...others] = projects;
  if (project === undefined || others.length > 0)
    throw new ConfigurationError(
      `Which project are these pages in? Add ${projects.map(({ id }) => `--project ${id}`).join(', or ')}`,
    );
  return project;
}
