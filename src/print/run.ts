import { relative } from 'node:path';
import { z } from 'zod';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import { hasStoredDays } from '../history/days.js';
import { asInvoked } from '../format/advice.js';
import { plainDayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { MOST_NAMED, section } from '../format/text.js';
import { lastEnded, type Period } from '../reports/period.js';
import type { RunOutcome } from '../service/run.js';
import type { Parts, WorkspaceView } from '../steps/step.js';
import { readSql } from '../columns.js';
import type { Reader } from '../history/duckdb.js';
import { mailLines } from './emails.js';
import { loadedLines } from './export.js';
import type { Job } from '../state/jobs.js';
import { jobLines } from './jobs.js';
import { createdWords } from './improve.js';
import type { ExportCost } from './progress.js';

// A week may begin on another day than those in `site_weeks`.
const WEEK = readSql(import.meta.url, 'statements/week-views.sql');
const weekRow = z.object({
  project: z.string(),
  human: z.int(),
  ai: z.int(),
});

/** A run, and what became of jobs. */
interface SummarizedRun extends RunOutcome {
  readonly jobs: ReadonlyMap<number, Job>;
}

/**
 * The final summary of a run: what was loaded, who reads, what the agents did, and where to look
 * next.
 */
export async function summarize(
  outcome: SummarizedRun,
  { workspace, state, store }: Parts,
  runtime: Runtime,
  cost: ExportCost,
  options: WorkspaceOptions,
): Promise<string> {
  const { workingDirectory, output, now } = runtime;
  const { bold, cyan } = output.colors;
  const week = lastEnded('week', now(), workspace.settings.reports);
  const program = programAt(process.argv[1] ?? '', workingDirectory);
  const typed = (words: string) => asInvoked(`readership ${words}`, options).replace('readership', program);
  const loaded = loadedLines(outcome.exported, cost);
  const shown = (file: string) => cyan(relative(workingDirectory, file));
  const rendered = outcome.reported?.pages ?? [];
  const pages =
    rendered.length > 0 && workspace.projects.length > MOST_NAMED
      ? [`${counted(rendered.length, 'page')} in ${shown(workspace.reportsDir)}`]
      : rendered.flatMap(({ file, subject }) => [subject, `  ${shown(file)}`]);
  const emailsOf = ({ reported }: Pick<RunOutcome, 'reported'>) =>
    section(bold('Email'), mailLines({ reported }, { workspace, state }, runtime));
  // Before anything is loaded, there is nothing to choose, read or query.
  if (!(await hasStoredDays(store)))
    return [...section(bold('Loaded'), loaded), ...emailsOf({ reported: undefined })].join('\n');
  const lines = [
    ...section(bold('Loaded'), loaded),
    ...section(bold('Read'), await readLines(store, workspace.projects, week)),
    ...section(bold('Agents'), await agentLines(outcome, workspace, output.width)),
    ...section(bold('Report'), pages),
    ...emailsOf(outcome),
    ...section(bold('Look at it'), [typed('report weekly --open'), typed('serve --open')]),
    ...section(
      bold('Query the history'),
      [
        'FROM site_weeks ORDER BY week DESC LIMIT 8',
        `FROM top_pages('${week.first}', '${week.last}') LIMIT 10`,
        `FROM human_vs_ai('${week.first}', '${week.last}', 'day')`,
      ].map((query) => typed(`sql "${query}"`)),
    ),
  ];
  return lines.join('\n');
}

/** Who read each project in a week, if anything is loaded of it. Of many projects, the less read ones share a line. */
async function readLines(
  reader: Reader,
  projects: WorkspaceView['projects'],
  week: Period,
): Promise<string[]> {
  const rows = await reader.query(WEEK, weekRow, { from: week.first, to: week.last });
  const read = projects.flatMap(({ id, name }) =>
    rows.filter(({ project }) => project === id).map((row) => ({ name, ...row })),
  );
  const mostRead = read.toSorted((one, other) => other.human + other.ai - one.human - one.ai);
  const others = mostRead.slice(MOST_NAMED);
  const named = others.length === 0 ? read : mostRead.slice(0, MOST_NAMED);
  const sum = (of: 'human' | 'ai') => others.reduce((total, row) => total + row[of], 0);
  const rest = { name: counted(others.length, 'other project'), human: sum('human'), ai: sum('ai') };
  return [...named, ...(others.length === 0 ? [] : [rest])].map(({ name, human, ai }) => {
    const views = `${thousands(human)} views by people, ${thousands(ai)} by AI`;
    const ofAi = human + ai === 0 ? '' : ` (${percent(ai / (human + ai))} AI)`;
    return `${name}, ${plainDayRange(week)}: ${views}${ofAi}`;
  });
}

/** What became of pages, and the jobs that were polled. */
async function agentLines(
  { improved, polled, jobs: changed }: SummarizedRun,
  { settings }: WorkspaceView,
  width: number,
): Promise<string[]> {
  const unchanged = (polled?.stillActive ?? []).filter(({ id }) => !changed.has(id));
  const [, ...lines] = await jobLines([...changed.values(), ...unchanged], width - 2);
  const all = improved.map(({ project: { name }, plan, created }) => ({
    name,
    words:
      settings.improve.mode === 'plan'
        ? `${counted(plan.flagged.length, 'page')} flagged; nothing created (improve.mode is plan): readership improve`
        : createdWords(plan, created),
  }));
  return [...linesOf(all), ...lines];
}

/** How to type this program's commands: by its name, or by its path in a clone, where it is not installed. */
function programAt(path: string, workingDirectory: string): string {
  if (!path.endsWith('.js') || path.includes('node_modules')) return 'readership';
  const near = relative(workingDirectory, path);
  return `node ${near.startsWith('..') ? path : near}`;
}

/** What is to be said about a project. */
interface OfProject {
  readonly name: string;
  readonly words: string;
}

/** One line per project; of many, those of which the same is to be said share one. */
function linesOf(all: readonly OfProject[]): string[] {
  if (all.length <= MOST_NAMED) return all.map(({ name, words }) => `${name}: ${words}`);
  const names = new Map<string, string[]>();
  for (const { name, words } of all) names.set(words, [...(names.get(words) ?? []), name]);
  return [...names].map(([words, [first, ...others]]) =>
    others.length === 0 ? `${first}: ${words}` : `${counted(others.length + 1, 'project')}, each: ${words}`,
  );
}
