import { adopt as adoptWorkspace } from '../app/acting.js';
import { placeWords } from '../effects/place.js';
import type { ExitCode } from '../errors.js';
import { publishStep } from '../steps/publish.js';
import { StepRunner } from '../steps/step.js';
import { readWorkspaceRow } from '../warehouse/identity.js';
import { defineCommand } from './command.js';
import { conclude, withSteps } from './steps.js';

export const adopt = defineCommand({
  name: 'adopt',
  scope: 'workspace',
  summary: 'send from this copy of a workspace from now on',
  description:
    'A workspace sends jobs, messages, emails and posts from one machine and one data directory. A copy anywhere else exports and reports, and sends nothing, until this command makes it the one that sends. Stop the other copy first: it finds out by itself only if both publish to the same lake.',
  examples: `
  readership adopt       after moving a workspace, or restoring it on a new machine`,
  environment: `Environment:
  READERSHIP_MACHINE     names this machine where its id and host name change: containers, CI`,
  run: (options, runtime) =>
    withSteps<ExitCode>('adopt', { ...options, needsNoKey: true }, runtime, async (context) => {
      await adoptWorkspace(context);
      const last = (await readWorkspaceRow(context.warehouse)).lakes?.at(-1);
      if (last !== undefined && last !== context.lake?.location)
        runtime.output.note(
          `This workspace last published to the lake ${last}, which publish.parquet does not name here. ` +
            'The other copy finds out only from a lake that publish.parquet names in both: set it, or make sure that the other copy never runs again.',
        );
      runtime.output.data(`This workspace now sends from ${placeWords(context.here)}.`);
      const runner = new StepRunner(context);
      await runner.step('publish', () => publishStep({ ...context, elsewhere: undefined }));
      return conclude(runner.outages, runtime);
    }),
});
