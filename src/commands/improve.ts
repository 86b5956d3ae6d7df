import type { Command } from 'commander';
import { planImprovement } from '../agents/plan.js';
import { MIN_WEEKS } from '../agents/select.js';
import { composePrompt } from '../agents/prompt.js';
import { StepRunner } from '../schedule/loop.js';
import { improveStep, type ProjectImprovement } from '../schedule/steps/improve.js';
import { publishStep } from '../schedule/steps/publish.js';
import { openHistory } from '../warehouse/history.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import { ENVIRONMENT_HELP, withProjectOption, withWorkspaceOptions } from './options.js';
import { plainText } from '../terminal/plain-text.js';
import type { Act, Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';

interface ImproveOptions extends WorkspaceOptions {
  readonly apply?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

export function declareImprove(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('improve')))
    .summary('show which pages deserve an agent, and why; with --apply, create the jobs')
    .description(
      'Chooses the pages with the most sustained reading by people and AI, and says why. Creates nothing, unless --apply is given: then each page gets one job, recorded before it is sent and never sent twice.',
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
${ENVIRONMENT_HELP}`,
    )
    .action((options: ImproveOptions) =>
      act((runtime) => (options.apply === true ? apply(options, runtime) : showPlan(options, runtime))),
    );
}

async function showPlan(options: ImproveOptions, runtime: Runtime): Promise<ExitCode> {
  const { projects, settings, historyFile } = await readWorkspace(options, runtime);
  const history = await openHistory(historyFile);
  try {
    for (const project of projects) {
      const plan = await planImprovement(history, project.id, settings.improve, runtime.now());
      const shown: ProjectImprovement = { project, plan, submitted: [], interrupted: [] };
      const promptOf = (page: { path: string; reason: string }) =>
        composePrompt(page, settings.improve.maxPromptLength);
      if (options.json === true) {
        const flagged = plan.flagged.map((page) => ({ ...page, prompt: promptOf(page) }));
        runtime.output.data(JSON.stringify({ project: project.id, ...plan, flagged }, null, 2));
      } else {
        runtime.output.data(planLines(shown, options.verbose === true ? promptOf : undefined).join('\n'));
      }
    }
    return 0;
  } finally {
    history.close();
  }
}

function planLines(
  { project, plan }: ProjectImprovement,
  promptOf: ((page: { path: string; reason: string }) => string) | undefined,
): string[] {
  const lines = [`${project.name ?? project.id}: ${plan.flagged.length} pages would get a job now`];
  if (plan.weeks < MIN_WEEKS)
    lines.push(
      `  There are ${plan.weeks} whole weeks of history; ${MIN_WEEKS} are needed to tell sustained reading from a burst.`,
    );
  for (const job of plan.waiting)
    lines.push(`  ${plainText(job.path)}  planned earlier as job ${job.id}, not sent yet`);
  for (const page of plan.flagged) {
    lines.push(`  ${page.path}`, `    ${page.reason}`);
    if (promptOf)
      lines.push(
        '',
        ...promptOf(page)
          .trimEnd()
          .split('\n')
          .map((line) => `    | ${line}`),
        '',
      );
  }
  if (plan.leftOut.length > 0) lines.push('Left out:');
  for (const { path, why } of plan.leftOut) lines.push(`  ${plainText(path)}  ${why}`);
  if (plan.flagged.length + plan.waiting.length > 0)
    lines.push('Nothing was created. To create the jobs: readership improve --apply');
  return lines;
}

function apply(options: ImproveOptions, runtime: Runtime): Promise<ExitCode> {
  return withSteps('improve', options, runtime, async (context) => {
    const runner = new StepRunner(context);
    const improved = await runner.step('improve', () => improveStep(context, true));
    await runner.step('publish', () => publishStep(context, runner.changed));
    for (const { project, submitted, interrupted } of improved ?? []) {
      runtime.output.data(
        `${project.name ?? project.id}: ${submitted.filter((job) => job.remote_id !== null).length} jobs created`,
      );
      for (const job of interrupted)
        runtime.output.data(
          `  job ${job.id} is unconfirmed: an earlier run ended before its reply. See: readership jobs show ${job.id}`,
        );
    }
    reportFaults(runner.faults, runtime);
    return exitCodeOfFaults(runner.faults);
  });
}
