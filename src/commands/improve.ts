import type { Command } from 'commander';
import { planImprovement } from '../agents/plan.js';
import type { ExitCode } from '../errors.js';
import { composePrompt, REFERENCE_TO_COME } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import type { FlaggedPage, LeftOutPage } from '../agents/select.js';
import { readSitemap } from '../agents/sitemap.js';
import { counted } from '../format/numbers.js';
import { improveStep } from '../steps/improve.js';
import { type Act, PLATFORM_ENVIRONMENT_HELP, withProjectOption, withWorkspaceOptions } from './options.js';
import { planLines, whyNoJob } from '../print/pages.js';
import { conclude, runSteps } from './steps.js';
import { withHistory } from '../app/open.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';

interface ImproveOptions extends WorkspaceOptions {
  readonly apply?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

export function declareImprove(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('improve')))
    .summary('show which pages deserve an agent, and why; create the jobs with --apply')
    .description(
      'Chooses the pages with the most sustained reading by people and AI, and says why. Creates nothing without --apply. With it, each page gets one job, which is recorded before it is sent and never sent twice automatically.',
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

const showPlan = (options: ImproveOptions, runtime: Runtime): Promise<ExitCode> =>
  withHistory<ExitCode>(
    options,
    runtime,
    async (history, { projects, settings, directory: workspaceDir }) => {
      const { output, now, signal } = runtime;
      const rules = settings.improve;
      const listedOf = await readSitemap(rules.sitemap, signal);
      const shown: object[] = [];
      for (const { id: project, name, siteUrl } of projects) {
        const state = { now: now(), isListed: listedOf(siteUrl) };
        const plan = await planImprovement(history, project, rules, state);
        const promptOf = ({ path, why }: FlaggedPage) =>
          composePrompt(
            { path, reason: wordsOf(why), project, reference: REFERENCE_TO_COME },
            { workspaceDir, maxPromptLength: rules.maxPromptLength },
          );
        const view = { name, plan, rules, width: output.width };
        if (options.json === true) {
          const flagged = plan.flagged.map((page) => ({ ...shownPage(page), prompt: promptOf(page) }));
          shown.push({ project, ...plan, flagged, leftOut: plan.leftOut.map(shownPage) });
        } else output.data(planLines(options.verbose === true ? { ...view, promptOf } : view).join('\n'));
      }
      if (options.json === true) output.json(shown);
      return 0;
    },
  );

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
    runtime.output.data(`${project.name}: ${counted(created, 'job')} created${why}`);
  }
  return conclude(outages, runtime);
}
