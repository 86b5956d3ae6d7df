import { withHistory } from '../app/workspace.js';
import { escapeUnsafe } from '../format/text.js';
import { metricsText } from '../print/metrics.js';
import { needsOf, operationsLines, statusLines } from '../print/status.js';
import { readStatus } from '../service/status.js';
import { defineCommand, JSON_OUTPUT, value } from './command.js';

export const status = defineCommand({
  name: 'status',
  scope: 'project',
  summary: 'what is stored, what is missing, and what needs attention',
  description:
    'Shows the coverage of the history: first and last day, gaps, provisional, failed, inconsistent and restated days, how long days take to settle, the requests of the last hour, and when the backfill will be done. Also shows the last runs, jobs, emails and disk space. Exits 1 if something needs attention. Reads the published history, so other commands cannot block it.',
  options: {
    ...JSON_OUTPUT,
    format: value('<format>', 'json, or prometheus: metrics for a textfile collector', {
      choices: ['json', 'prometheus'],
      conflicts: ['json'],
    }),
  },
  examples: `
  readership status
  readership status || echo attention needed
  readership status --json | jq .needs
  readership status --format prometheus > readership.prom.new && mv readership.prom.new readership.prom`,
  run: (options, runtime) =>
    withHistory(options, runtime, async (history, workspace) => {
      const { output } = runtime;
      const now = runtime.now();
      const { projects, operations } = await readStatus(history, workspace, now);
      const needs = needsOf(projects, operations, workspace, now);
      if (options.format === 'prometheus') output.write(metricsText(projects, operations, needs));
      else if (options.json === true || options.format === 'json')
        output.json({ ...operations, projects, needs });
      else {
        const { bold, red } = output.colors;
        for (const project of projects) output.words(statusLines(project, output.colors).join('\n'));
        output.words([bold('Operations'), ...operationsLines(operations, now)].join('\n'));
        for (const need of needs)
          output.data(`${red('attention')}  ${escapeUnsafe(need.replaceAll(/\s*\n\s*/g, ' '))}`);
      }
      return needs.length === 0 ? 0 : 1;
    }),
});
