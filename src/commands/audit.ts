import { auditLines } from '../print/export.js';
import { auditStep } from '../steps/history.js';
import { defineCommand, flag, JSON_LOG, PLATFORM_ENVIRONMENT } from './command.js';
import { conclude, runSteps } from './steps.js';

export const audit = defineCommand({
  name: 'audit',
  scope: 'project',
  summary: 'compare the stored history with the platform in few requests',
  description:
    'Compares the final days with the totals of the platform: one request if the history has no gaps, and a few more to find a day that differs. Because it compares totals, it misses a change that leaves the totals of a day the same; `export --reload` reads days in full. Exits 1 if something differs and was not repaired.',
  options: { repair: flag('reload the days that differ'), json: flag(JSON_LOG) },
  examples: `
  readership audit
  readership audit --repair`,
  environment: PLATFORM_ENVIRONMENT,
  run: async (options, runtime) => {
    const { result: audits = [], outages } = await runSteps('audit', options, runtime, (runner, context) =>
      runner.step('audit', () => auditStep(context, options.repair === true)),
    );
    for (const one of audits) runtime.output.data(auditLines(one).join('\n'));
    const exitCode = conclude(outages, runtime);
    const isLeft = audits.some(
      ({ audit }) => audit.repaired === undefined && audit.differing.length + audit.damaged.length > 0,
    );
    return isLeft ? 1 : exitCode;
  },
});
