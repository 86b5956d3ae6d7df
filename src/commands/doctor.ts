import type { Command } from 'commander';
import type { ExitCode } from './exit-code.js';
import { ENVIRONMENT_HELP, withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from './runtime.js';
import { type Finding, examine } from './doctor-checks.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';
import { ConfigurationError } from '../errors.js';

type DoctorOptions = WorkspaceOptions & { readonly json?: boolean };

export function declareDoctor(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('doctor'))
    .summary('check configuration, keys, mail server, clock, database and disk')
    .description(
      'Checks what Readership needs, one line each: pass, warn or fail, with what to do. It sends one request for views a project, counted in the budget where the database is free and of this version, and changes nothing else: an older database stays as it is, and whether a key may create agent jobs is not tried.',
    )
    .option('--json', 'write JSON')
    .addHelpText(
      'after',
      `
Examples:
  readership doctor                 after installing it, or when something is odd
  readership doctor --json | jq '.[] | select(.verdict != "pass")'
${ENVIRONMENT_HELP}`,
    )
    .action((options: DoctorOptions) => act((runtime) => doctor(options, runtime)));
}

async function doctor(options: DoctorOptions, runtime: Runtime): Promise<ExitCode> {
  const findings = await findingsOf(options, runtime);
  const { output } = runtime;
  const { green, yellow, red } = output.colors;
  const paint = { pass: green, warn: yellow, fail: red };
  if (options.json === true) output.data(JSON.stringify(findings, null, 2));
  else
    for (const { verdict, check, words } of findings)
      output.data(`${paint[verdict](verdict)}  ${check.padEnd(15)}${words}`);
  return findings.some(({ verdict }) => verdict === 'fail') ? 1 : 0;
}

async function findingsOf(options: DoctorOptions, runtime: Runtime): Promise<Finding[]> {
  try {
    return await examine(await readWorkspace(options, runtime), runtime);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return [{ check: 'configuration', verdict: 'fail', words: error.message }];
  }
}
