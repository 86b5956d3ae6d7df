import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { readEnvironment } from '../config/load.js';
import { ConfigurationError } from '../errors.js';
import { findingLines } from '../print/status.js';
import { checkWorkspace } from '../service/doctor.js';
import type { CheckResult } from '../service/findings.js';
import { tryPlatform } from '../service/try-platform.js';
import { workspaceCommand, EMAIL_ENVIRONMENT, JSON_OUTPUT, value } from './command.js';

export const doctor = workspaceCommand('doctor', {
  summary: 'check configuration, keys, mail server, clock, disk and stored data',
  description:
    'Checks what Readership needs, with a line for each check: pass, warn or fail, and what to do. It sends a few page-view requests per project, which count toward the hourly limit; if the platform answers, a pause after a refusal ends. It changes nothing else, and permission to create agent jobs is not checked. With --url, it tests a platform before anything is configured, with up to six requests: its clock, page size, second page, sums of days, old days and agent jobs.',
  options: {
    url: value<string>(
      '<address>',
      'try the platform at this address before configuring anything; needs --project',
      { conflicts: ['config', 'sandbox'] },
    ),
    project: value('<id>', 'only this project'),
    ...JSON_OUTPUT,
  },
  examples: `
  readership doctor                 after installing, or if something is wrong
  readership doctor --url https://platform.example.com --project prj_123
  readership doctor --json | jq '.[] | select(.verdict != "pass")'`,
  environment: EMAIL_ENVIRONMENT,
  run: async ({ url, ...options }, runtime) => {
    const findings = await (url === undefined
      ? findingsOf(options, runtime)
      : findingsAt(url, options.project, runtime));
    if (options.json === true) runtime.output.json(findings);
    else runtime.output.words(findingLines(findings, runtime.output.colors));
    return findings.some(({ verdict }) => verdict === 'fail') ? 1 : 0;
  },
});

async function findingsAt(
  url: string,
  project: string | undefined,
  runtime: Runtime,
): Promise<CheckResult[]> {
  if (project === undefined)
    throw new ConfigurationError(
      '--url goes with --project: readership doctor --url https://platform.example.com --project prj_123',
    );
  const { workingDirectory, environment, output } = runtime;
  const known = await readEnvironment(undefined, workingDirectory, environment, output.note);
  return tryPlatform(url, project, known, runtime);
}

async function findingsOf(options: WorkspaceOptions, runtime: Runtime): Promise<CheckResult[]> {
  try {
    return await checkWorkspace(await readWorkspace(options, runtime), runtime);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return [{ check: 'configuration', verdict: 'fail', words: error.message }];
  }
}
