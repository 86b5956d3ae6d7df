import { expectHistory, withState } from '../app/state.js';
import { readWorkspace, type Workspace } from '../app/workspace.js';
import { exists } from '../files.js';
import { escapeUnsafe, MOST_NAMED } from '../format/text.js';
import { counted } from '../format/numbers.js';
import { factLines, isUpToDate, projectFacts } from '../print/project-facts.js';
import { needsOf, noteUnsettled, operationsFacts } from '../print/status.js';
import { readStatus, type Status } from '../service/status.js';
import { readLastRuns } from '../state/runs.js';
import type { State } from '../state/state.js';
import { type KnownDays, readDays, recallDays } from '../steps/history.js';
import type { Output } from '../terminal/output.js';
import { projectCommand, JSON_OUTPUT } from './command.js';

export const status = projectCommand('status', {
  summary: 'what is stored, what is missing, and what needs attention',
  description:
    'Shows how far the history goes, how many days are left to load, the requests of the last hour, the last runs, jobs and disk space, and everything that needs your attention. Exits 1 if something needs attention. Reads the history, so other commands cannot block it. --json has every number.',
  options: JSON_OUTPUT,
  examples: `
  readership status
  readership status || echo attention needed
  readership status --json | jq .needs`,
  run: async (options, runtime) => {
    const { output } = runtime;
    const now = runtime.now();
    const workspace = await readWorkspace(options, runtime, 'optional');
    const status = await withState(workspace, async (state) => {
      const days = await daysOf(workspace, state, now).catch((error: unknown) => {
        // Without a history, what may or may not have been sent is named as well.
        noteUnsettled(workspace, state, runtime);
        throw error;
      });
      return readStatus({ days, state }, workspace, now);
    });
    const { projects, operations } = status;
    const needs = needsOf(status, workspace, now);
    if (options.json === true) output.json({ needs, ...operations, projects });
    else showStatus(status, needs, output, now);
    return needs.length === 0 ? 0 : 1;
  },
});

/** What is known of the history. Only if the worker has not stored it since, DuckDB is loaded. */
async function daysOf(workspace: Workspace, state: State, now: Date): Promise<KnownDays> {
  await expectHistory(workspace, state);
  const known = await recallDays(workspace, state, now);
  if (known !== undefined) return known;
  // An export that has stored no day yet may be paused, or have failed.
  if (readLastRuns(state, now).length > 0 && !(await exists(workspace.historyFile)))
    return { projects: new Map(), datedInFuture: [] };
  const { openOwnHistory } = await import('../history/history.js');
  const history = await openOwnHistory(workspace.historyFile);
  try {
    return await readDays(
      history,
      workspace.projects.map(({ id }) => id),
      now,
    );
  } finally {
    history.close();
  }
}

function showStatus({ projects, operations }: Status, needs: readonly string[], output: Output, now: Date) {
  const { colors } = output;
  const named =
    projects.length > MOST_NAMED ? projects.filter((project) => !isUpToDate(project, now)) : projects;
  for (const project of named)
    output.words([colors.bold(project.name), ...factLines(projectFacts(project, now), colors)].join('\n'));
  const others = projects.length - named.length;
  if (others > 0)
    output.words(
      `${colors.bold(counted(others, 'project'))} up to date. To see one: readership status --project ID`,
    );
  output.words(
    [colors.bold('Operations'), ...factLines(operationsFacts(operations, now), colors)].join('\n'),
  );
  if (needs.length === 0) output.words('Nothing needs your attention.');
  for (const need of needs)
    output.data(`${colors.red('attention')}  ${escapeUnsafe(need.replaceAll(/\s*\n\s*/g, ' '))}`);
}
