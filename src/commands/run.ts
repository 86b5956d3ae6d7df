import { summarize } from '../print/run.js';
import { runLoop } from '../service/loop.js';
import { aDuration, defineCommand, EMAIL_ENVIRONMENT, flag, JSON_LOG, value } from './command.js';
import { conclude, withSteps } from './steps.js';

/** The sandbox's agents finish within seconds; those of a real platform are polled by the next run. */
const SANDBOX_WAIT_MS = 30_000;

export const run = defineCommand({
  name: 'run',
  scope: 'workspace',
  summary: 'run all five steps once: export, improve, poll, report, publish',
  description:
    'Runs all five steps once: loads the days that are due, chooses the pages that deserve an agent (and creates their jobs if improve.mode is apply), polls the jobs, renders the reports, emails the reports that are due, and publishes the history. What is due follows from stored state, so it is safe to run at any time, even twice.',
  options: {
    wait: value(
      '<time>',
      'keep polling while jobs are active, such as 30s or 10m (default: 30s in the sandbox, else poll once)',
      aDuration,
    ),
    pausedOk: flag(
      'exit with 0 instead of 75 if the next run will resume, for schedulers that know only success and failure',
    ),
    json: flag(JSON_LOG),
  },
  examples: `
  readership run --sandbox          try everything without an account
  readership run                    once an hour, from cron
  readership run --wait 10m         wait until the agents are done
  readership run --shard 2/8        on the second of eight machines: docs/scale.md`,
  environment: EMAIL_ENVIRONMENT,
  run: ({ wait, pausedOk, ...options }, runtime) =>
    withSteps('run', options, runtime, async (context, workspace, progress) => {
      const outcome = await runLoop(context, {
        apply: context.settings.improve.mode === 'apply',
        waitMs: wait ?? (options.sandbox === true ? SANDBOX_WAIT_MS : 0),
      });
      progress.end();
      if (!runtime.signal.aborted && options.json !== true)
        runtime.output.words(await summarize(outcome, context, workspace, runtime, progress.cost));
      const exitCode = conclude(outcome.outages, runtime);
      return exitCode === 75 && pausedOk === true ? 0 : exitCode;
    }),
});
