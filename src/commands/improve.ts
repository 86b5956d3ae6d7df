import type { Command } from 'commander';
import { planImprovement } from '../agents/plan.js';
import type { ExitCode } from '../errors.js';
import { composePrompt, REFERENCE_TO_COME } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import type { FlaggedPage, LeftOutPage } from '../agents/select.js';
import { readSitemap } from '../agents/sitemap.js';
import { counted } from '../format/numbers.js';
import { improveStep } from '../steps/improve.js';
import { openHistory } from '../warehouse/published.js';
import { type Act, PLATFORM_ENVIRONMENT_HELP, withProjectOption, withWorkspaceOptions } from './options.js';
import { planLines, whyNoJob } from '../print/pages.js';
import { conclude, runSteps } from './steps.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';

interface ImproveOptions extends WorkspaceOptions {
  readonly apply?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

export function declareImprove(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('improve')))
    .summary('show which pages deserve an agent, and why; with --apply, create the jobs')
    .description(
      'Chooses the pages with the most sustained reading by people and AI, and says why. Creates nothing, unless --apply is given: then each page gets one job, recorded before it is sent and never sent twice by itself.',
    )
    .option('--apply', 'create the jobs')
    .option('--verbose', 'show the exact prompts')
    .option('--json', 'write the plan as JSON')
    .addHelpText(
      'after',
      `
Examples:
  readership improve --verbose      look at the plan and the prompts
  readership improve --apply        create the jobs
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((options: ImproveOptions) =>
      act((runtime) => (options.apply === true ? apply(options, runtime) : showPlan(options, runtime))),
    );
}

async function showPlan(options: ImproveOptions, runtime: Runtime): Promise<ExitCode> {
  const { projects, settings, historyFile, directory } = await readWorkspace(options, runtime);
  const { output, now, signal } = runtime;
  const rules = settings.improve;
  const promptRules = { workspaceDir: directory, maxPromptLength: rules.maxPromptLength };
  const promptOf = (project: string) => (page: FlaggedPage) =>
    composePrompt(
      { path: page.path, reason: wordsOf(page.why), project, reference: REFERENCE_TO_COME },
      promptRules,
    );
  const listedOf = await readSitemap(rules.sitemap, signal);
  const history = await openHistory(historyFile);
  try {
    const plans = [];
    for (const { id, name = id, siteUrl } of projects) {
      const surroundings = { now: now(), isListed: listedOf(siteUrl) };
      const plan = await planImprovement(history, id, rules, surroundings);
      plans.push({ project: id, name, plan });
    }
    if (options.json === true) {
      const shown = plans.map(({ project, plan }) => ({
        ...{ project, ...plan },
        flagged: plan.flagged.map((page) => ({ ...shownPage(page), prompt: promptOf(project)(page) })),
        leftOut: plan.leftOut.map(shownPage),
      }));
      output.data(JSON.stringify(shown, null, 2));
      return 0;
    }
    for (const { project, name, plan } of plans) {
      const view = { name, plan, rules, width: output.width };
      output.data(
        planLines(options.verbose === true ? { ...view, promptOf: promptOf(project) } : view).join('\n'),
      );
    }
    return 0;
  } finally {
    history.close();
  }
}

/** A page as `--json` writes it: the reason as a code, and in words. */
const shownPage = ({ path, why, evidence }: FlaggedPage | LeftOutPage) => ({
  ...{ path, code: why.code, why: wordsOf(why), evidence },
});

async function apply(options: ImproveOptions, runtime: Runtime): Promise<ExitCode> {
  const { result, outages } = await runSteps('improve', options, runtime, (runner, context) =>
    runner.step('improve', () => improveStep(context, true)),
  );
  for (const { project, plan, submitted } of result ?? []) {
    const created = submitted.filter((job) => job.remote_id !== null).length;
    const why = created === 0 ? whyNoJob(plan) : '';
    runtime.output.data(`${project.name ?? project.id}: ${counted(created, 'job')} created${why}`);
  }
  return conclude(outages, runtime);
}
