import { withHistoryOf } from '../app/histories.js';
import { readAllParts, type Runtime, type Workspace } from '../app/workspace.js';
import { formatShard } from '../config/shard.js';
import { ConfigurationError, type ExitCode, messageOf, ReadershipError } from '../errors.js';
import { escapeUnsafe } from '../format/text.js';
import { metricsText } from '../print/metrics.js';
import { factLines, needsOf, operationsRows, statusRows } from '../print/status.js';
import { readStatus } from '../service/status.js';
import type { Output } from '../terminal/output.js';
import { defineCommand, JSON_OUTPUT, value } from './command.js';

export const status = defineCommand({
  name: 'status',
  scope: 'project',
  summary: 'what is stored, what is missing, and what needs attention',
  description:
    'Shows the coverage of the history: first and last day, gaps, provisional, failed, inconsistent and restated days, how long days take to settle, the requests of the last hour, and when the backfill will be done. Also shows the last runs, jobs, emails and disk space. Exits 1 if something needs attention. Reads the published history, so other commands cannot block it.',
  options: {
    ...JSON_OUTPUT,
    format: value<string>('<format>', 'json, or prometheus: metrics for a textfile collector', {
      choices: ['json', 'prometheus'],
      conflicts: ['json'],
    }),
  },
  examples: `
  readership status
  readership status || echo attention needed
  readership status --json | jq .needs
  readership status --format prometheus > readership.prom.new && mv readership.prom.new readership.prom`,
  run: async (options, runtime) => {
    const { output } = runtime;
    const format = options.json === true ? 'json' : options.format;
    const workspace = await readAllParts(options, runtime, 'optional');
    if (workspace.parts !== undefined) return showShards(workspace.parts, format, runtime);
    const state = await stateOf(workspace, runtime);
    const { projects, operations, needs } = state;
    if (format === 'prometheus') output.write(metricsText(projects, operations, needs));
    else if (format === 'json') output.json({ ...operations, projects, needs });
    else showState(state, output);
    return needs.length === 0 ? 0 : 1;
  },
});

type State = Awaited<ReturnType<typeof stateOf>>;

/** The state of a workspace or a shard. */
const stateOf = (part: Workspace, runtime: Runtime) =>
  withHistoryOf(part, runtime, async (history, workspace) => {
    const now = runtime.now();
    const { projects, operations } = await readStatus(history, workspace, now);
    const needs = needsOf(projects, operations, workspace, now);
    return { now, projects, operations, needs, isFromLake: workspace.historyFile !== part.historyFile };
  });

/** Shows the state of each shard. One that cannot be read needs attention, too. */
async function showShards(
  parts: readonly Workspace[],
  format: string | undefined,
  runtime: Runtime,
): Promise<ExitCode> {
  if (format === 'prometheus')
    throw new ConfigurationError('Metrics are about one shard: add --shard, and write a file for each.');
  const { output } = runtime;
  const { bold } = output.colors;
  const shards: { shard: string; needs: readonly string[] }[] = [];
  for (const part of parts) {
    const shard = part.shard === undefined ? '' : formatShard(part.shard);
    try {
      const state = await stateOf(part, runtime);
      const { projects, operations, needs, isFromLake } = state;
      const found = { shard, isFromLake, ...operations, projects, needs };
      shards.push(found);
      if (format === 'json') continue;
      output.words(bold(`Shard ${shard}${isFromLake ? ', from a copy of the lake' : ''}`));
      showState(state, output);
    } catch (error) {
      if (!(error instanceof ReadershipError)) throw error;
      const needs = [messageOf(error)];
      shards.push({ shard, needs });
      if (format === 'json') continue;
      output.words(bold(`Shard ${shard}, not readable here`));
      showNeeds(needs, output);
    }
  }
  if (format === 'json') output.json({ shards });
  return shards.every(({ needs }) => needs.length === 0) ? 0 : 1;
}

function showState({ now, projects, operations, needs }: State, output: Output): void {
  const { colors } = output;
  for (const project of projects)
    output.words([colors.bold(project.name), ...factLines(statusRows(project), colors)].join('\n'));
  output.words([colors.bold('Operations'), ...factLines(operationsRows(operations, now), colors)].join('\n'));
  showNeeds(needs, output);
}

function showNeeds(needs: readonly string[], output: Output): void {
  const { red } = output.colors;
  for (const need of needs)
    output.data(`${red('attention')}  ${escapeUnsafe(need.replaceAll(/\s*\n\s*/g, ' '))}`);
}
