import type { Command } from 'commander';
import { dayList } from '../format/days.js';
import type { ExitCode } from '../errors.js';
import { counted } from '../format/numbers.js';
import { auditStep, type ProjectAudit } from '../steps/export.js';
import {
  type Act,
  JSON_LOG,
  PLATFORM_ENVIRONMENT_HELP,
  withProjectOption,
  withWorkspaceOptions,
} from './options.js';
import { conclude, runSteps } from './steps.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';

interface AuditCommandOptions extends WorkspaceOptions {
  readonly repair?: boolean;
  readonly json?: boolean;
}

export function declareAudit(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('audit')))
    .summary('compare the stored history with the platform in few requests')
    .description(
      'Compares the final days with the totals of the platform: one request if the history has no gaps, and a few more to find a day that differs. Because it compares totals, it misses a change that leaves the totals of a day the same; `export --reload` reads days in full. Exits 1 if something differs and was not repaired.',
    )
    .option('--repair', 'reload the days that differ')
    .option('--json', JSON_LOG)
    .addHelpText(
      'after',
      `
Examples:
  readership audit
  readership audit --repair
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((options: AuditCommandOptions) => act((runtime) => audit(options, runtime)));
}

async function audit(options: AuditCommandOptions, runtime: Runtime): Promise<ExitCode> {
  const { result: audits = [], outages } = await runSteps('audit', options, runtime, (runner, context) =>
    runner.step('audit', () => auditStep(context, options.repair === true)),
  );
  for (const one of audits) runtime.output.data(auditLines(one).join('\n'));
  const exitCode = conclude(outages, runtime);
  const isLeft = audits.some(
    ({ audit }) => audit.repaired === undefined && audit.differing.length + audit.damaged.length > 0,
  );
  return isLeft ? 1 : exitCode;
}

function auditLines({ project, audit }: ProjectAudit): string[] {
  const { days, differing, damaged, forgotten, refused, repaired } = audit;
  const name = project.name;
  if (days + refused.length === 0) return [`${name}: there are no final days to verify yet.`];
  const reloaded = repaired?.results.filter((result) => result.outcome !== 'failed').length ?? 0;
  const isClean = days > 0 && differing.length + damaged.length + forgotten.length === 0;
  return [
    `${name}: ${counted(days, 'final day')} verified${isClean ? ': all as stored' : ''}`,
    ...(differing.length === 0 ? [] : [`  differ from the platform: ${dayList(differing)}`]),
    ...(damaged.length === 0 ? [] : [`  do not add up in the database: ${dayList(damaged)}`]),
    ...(forgotten.length === 0
      ? []
      : [`  the platform no longer has ${counted(forgotten.length, 'day')}; the stored data is kept`]),
    ...(refused.length === 0
      ? []
      : [`  not compared, because the platform refuses their range: ${dayList(refused)}`]),
    ...(repaired === undefined || repaired.results.length === 0
      ? []
      : [`  ${counted(reloaded, 'day')} loaded again`]),
    ...(repaired === undefined && differing.length + damaged.length > 0
      ? ['  load them again: readership audit --repair']
      : []),
  ];
}
