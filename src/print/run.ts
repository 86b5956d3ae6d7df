import { relative } from 'node:path';
import { z } from 'zod';
import { readJobsOf } from '../agents/ledger.js';
import type { Runtime, Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { shardOption } from '../config/shard.js';
import { dayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { section } from '../format/text.js';
import { ISO_CALENDAR, lastEnded, type Period } from '../reports/period.js';
import type { LoopOutcome } from '../service/loop.js';
import type { StepContext } from '../steps/step.js';
import type { ProjectImprovement } from '../steps/improve.js';
import { mailLines } from './emails.js';
import { loadedLines } from './export.js';
import { jobLines } from './jobs.js';
import { whyNoJob } from './pages.js';
import { readSql } from '../warehouse/query.js';
import type { ExportCost } from './progress.js';

const STORED = readSql(import.meta.url, 'statements/stored.sql');
const weekRow = z.object({ human: z.int(), ai: z.int(), ai_share: z.number().nullable() });

/**
 * The final summary of a run: what was loaded, who reads, what the agents did, and where to look
 * next.
 */
export async function summarize(
  outcome: LoopOutcome,
  context: StepContext,
  { configuration, shard }: Workspace,
  runtime: Runtime,
  cost: ExportCost,
): Promise<string> {
  const { workingDirectory, output, now } = runtime;
  const { bold, cyan } = output.colors;
  const week = lastEnded('week', now(), ISO_CALENDAR);
  const options = (configuration === undefined ? ' --sandbox' : '') + shardOption(shard);
  const program = programAt(process.argv[1] ?? '', workingDirectory);
  const loaded = outcome.exported.flatMap((project) => loadedLines(project, cost));
  const read = await Promise.all(context.projects.map((project) => readLine(project, context, week)));
  const pages = (outcome.reported?.pages ?? []).flatMap(({ file, subject }) => [
    subject,
    `  ${cyan(relative(workingDirectory, file))}`,
  ]);
  const examples = await examplesOf(`${program} sql${options}`, context, week);
  // Before anything is loaded, there is nothing to choose, read or query.
  if (examples.length === 0) return section(bold('Loaded'), loaded).join('\n');
  const lines = [
    ...section(bold('Loaded'), loaded),
    ...section(bold('Read'), read.flat()),
    ...section(bold('Agents'), await agentLines(outcome, context, output.width)),
    ...section(bold('Report'), pages),
    ...section(bold('Email'), await mailLines(outcome, context, runtime)),
    ...section(bold('Look at it'), [
      `${program} report weekly${options} --open`,
      `${program} serve${options} --open`,
    ]),
    ...section(bold('Query the history'), examples),
  ];
  return lines.join('\n');
}

async function readLine(
  project: ProjectSettings,
  { warehouse }: StepContext,
  week: Period,
): Promise<string[]> {
  const [row] = await warehouse.query(
    'SELECT human, ai, ai_share FROM site_weeks WHERE project = $project AND week = $week::DATE',
    weekRow,
    { project: project.id, week: week.first },
  );
  if (row === undefined) return [];
  const share = row.ai_share === null ? '' : ` (${percent(row.ai_share)} AI)`;
  const views = `${thousands(row.human)} views by people, ${thousands(row.ai)} by AI${share}`;
  return [`${project.name}, ${week.label.toLowerCase()}, ${dayRange(week)}: ${views}`];
}

async function agentLines(
  outcome: LoopOutcome,
  { projects, warehouse, settings }: StepContext,
  width: number,
): Promise<string[]> {
  const [, ...jobs] = await jobLines(await readJobsOf(warehouse, projects), width - 2);
  return [...outcome.improved.map((improved) => improvedLine(improved, settings.improve.mode)), ...jobs];
}

function improvedLine({ project, plan, submitted }: ProjectImprovement, mode: 'plan' | 'apply'): string {
  const name = project.name;
  if (mode === 'plan')
    return `${name}: ${counted(plan.flagged.length, 'page')} flagged; nothing created (improve.mode is plan): readership improve`;
  if (submitted.length > 0) return `${name}: ${counted(submitted.length, 'job')} sent`;
  return `${name}: no new job${whyNoJob(plan)}`;
}

const storedRow = z.object({ days: z.int(), page: z.string().nullable() });

/** Queries of what is stored; empty if nothing is. */
async function examplesOf(
  command: string,
  { warehouse }: StepContext,
  { first, last }: Pick<Period, 'first' | 'last'>,
): Promise<string[]> {
  const [stored] = await warehouse.query(STORED, storedRow, { first, last });
  if (stored === undefined || stored.days === 0) return [];
  return [
    `${command} "FROM site_weeks ORDER BY week DESC LIMIT 8"`,
    `${command} "FROM top_pages('${first}', '${last}') LIMIT 10"`,
    ...(stored.page === null
      ? []
      : [`${command} "FROM page_history('${stored.page}') ORDER BY day DESC LIMIT 14"`]),
  ];
}

/** How to type this program's commands: by its name, or by its path in a clone, where it is not installed. */
function programAt(path: string, workingDirectory: string): string {
  if (!path.endsWith('.js') || path.includes('node_modules')) return 'readership';
  const near = relative(workingDirectory, path);
  return `node ${near.startsWith('..') ? path : near}`;
}
