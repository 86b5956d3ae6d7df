import { withHistoryOf } from '../app/histories.js';
import { readAllParts, type Runtime, shardsOf, type Workspace } from '../app/workspace.js';
import { formatShard } from '../config/shard.js';
import { ConfigurationError, messageOf, ReadershipError } from '../errors.js';
import { escapeUnsafe } from '../format/text.js';
import { metricsText } from '../print/metrics.js';
import { factLines, needsOf, operationsRows, statusRows } from '../print/status.js';
import { readStatus } from '../service/status.js';
import type { Output } from '../terminal/output.js';
import { projectCommand, JSON_OUTPUT, value } from './command.js';

export const status = projectCommand('status', {
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
  readership status --format prometheus > new && mv new readership.prom`,
  run: async (options, runtime) => {
    const { output } = runtime;
    const format = options.json === true ? 'json' : options.format;
    const workspace = await readAllParts(options, runtime, 'optional');
    const isSplit = workspace.parts !== undefined;
    if (isSplit && format === 'prometheus')
      throw new ConfigurationError('Metrics are about one shard: add --shard, and write a file for each.');
    const states: State[] = [];
    for (const part of shardsOf(workspace)) {
      const state = await stateOf(part, isSplit, runtime);
      states.push(state);
      if (format === undefined) showState(state, output, runtime.now());
      else if (format === 'prometheus' && state.status !== undefined)
        output.write(metricsText(state.status.projects, state.status.operations, state.needs));
    }
    const shown = states.map(({ status, ...state }) => ({
      ...state,
      ...status?.operations,
      projects: status?.projects,
    }));
    if (format === 'json') output.json(isSplit ? { shards: shown } : shown[0]);
    return states.every(({ needs }) => needs.length === 0) ? 0 : 1;
  },
});

/** The state of a workspace or a shard. */
interface State {
  readonly shard?: string;
  readonly isFromLake?: boolean;
  /** Undefined if it cannot be read. */
  readonly status?: Awaited<ReturnType<typeof readStatus>>;
  readonly needs: readonly string[];
}

/** One of several shards that cannot be read needs attention, too. */
async function stateOf(part: Workspace, isSplit: boolean, runtime: Runtime): Promise<State> {
  const shard = part.shard && formatShard(part.shard);
  try {
    return await withHistoryOf(part, runtime, async (history, workspace) => {
      const now = runtime.now();
      const status = await readStatus(history, workspace, now);
      const needs = needsOf(status.projects, status.operations, workspace, now);
      const isFromLake = workspace.historyFile !== part.historyFile;
      return { ...(shard !== undefined && { shard, isFromLake }), status, needs };
    });
  } catch (error) {
    if (!isSplit || shard === undefined || !(error instanceof ReadershipError)) throw error;
    return { shard, needs: [messageOf(error)] };
  }
}

function showState({ shard, isFromLake, status, needs }: State, output: Output, now: Date): void {
  const { colors } = output;
  const { projects = [], operations } = status ?? {};
  const origin = isFromLake === true ? ', from a copy of the lake' : '';
  if (shard !== undefined)
    output.words(colors.bold(`Shard ${shard}${status === undefined ? ', not readable here' : origin}`));
  for (const project of projects)
    output.words([colors.bold(project.name), ...factLines(statusRows(project), colors)].join('\n'));
  if (operations !== undefined)
    output.words(
      [colors.bold('Operations'), ...factLines(operationsRows(operations, now), colors)].join('\n'),
    );
  for (const need of needs)
    output.data(`${colors.red('attention')}  ${escapeUnsafe(need.replaceAll(/\s*\n\s*/g, ' '))}`);
}
