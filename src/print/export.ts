import { ReadershipError } from '../errors.js';
import type { ExportPlan } from '../export/plan.js';
import type { DayResult } from '../export/load.js';
import type { Check } from '../export/verify.js';
import type { Day } from '../day.js';
import { dayList, duration, longDay, nextMinute, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import type { ProjectExport } from '../steps/export.js';
import type { ExportCost } from './progress.js';

/** The result of a project's export, in one to three lines. */
export function loadedLines(exported: ProjectExport, cost: ExportCost): string[] {
  const { project, outcome } = exported;
  const name = project.name;
  if (outcome === undefined) return [`${name}: nothing to load, because the platform has no views yet.`];
  const { plan, results, check, removed } = outcome;
  const { note } = plan.range;
  const lines = [...(note === undefined ? [] : [`  ${note}`]), ...removedLines(removed)];
  if (plan.range.first > plan.range.last)
    return [`${name}: nothing to load: the history begins on ${longDay(plan.range.first)}.`, ...lines];
  const loaded = results.filter((result) => result.outcome !== 'failed');
  const rows = loaded.reduce((sum, result) => sum + result.rows, 0);
  const added = loaded.filter((result) => result.outcome === 'added').length;
  const first =
    loaded.length === 0
      ? `${name}: no days loaded of ${plainDayRange(plan.range)}`
      : `${name}: ${counted(added, 'new day')} of ${plainDayRange(plan.range)}, ${counted(rows, 'row')}, ` +
        `${counted(cost.requests, 'request')}, ${duration(cost.elapsedMs)}`;
  return [
    first,
    ...detailLines(plan, loaded, results),
    ...checkLines(check),
    ...lines,
    ...leftLines(exported),
  ];
}

type LoadedDay = Exclude<DayResult, { outcome: 'failed' }>;

function detailLines(
  { alreadyFinal, readToday, waiting }: ExportPlan,
  loaded: readonly LoadedDay[],
  results: readonly DayResult[],
): string[] {
  const inState = (state: LoadedDay['state']) => loaded.filter((result) => result.state === state).length;
  const again = loaded.filter(({ outcome }) => outcome === 'unchanged' || outcome === 'restated');
  const restated = again.filter((result) => result.outcome === 'restated').length;
  const forgotten = loaded.filter((result) => result.outcome === 'forgotten').length;
  const failed = results.length - loaded.length;
  const facts = [
    alreadyFinal > 0 && `${counted(alreadyFinal, 'day')} already final, not read again`,
    readToday > 0 && `${counted(readToday, 'day')} already read today, due again tomorrow`,
    waiting.length > 0 && waitingLine(waiting),
    again.length > 0 &&
      `${counted(again.length, 'day')} read again, ${restated === 0 ? 'unchanged' : `${restated} restated`}`,
    forgotten > 0 && forgottenLine(forgotten),
    inState('final') > 0 && `${inState('final')} now final`,
    inState('provisional') > 0 && `${inState('provisional')} provisional: may still change, read again later`,
    inState('inconsistent') > 0 &&
      `${inState('inconsistent')} inconsistent: rows and totals did not add up, read again later`,
    failed > 0 && `${failed} failed: retried later`,
  ];
  return facts.filter((fact) => fact !== false).map((fact) => `  ${fact}`);
}

export const waitingLine = (days: readonly Day[]): string =>
  `${counted(days.length, 'day')} failed or did not add up more than once: retried later, or now with --reload`;

const removedLines = (removed: readonly Day[]): string[] =>
  removed.length === 0
    ? []
    : [
        `  ${dayList(removed)} removed: stored too early by a clock that was ahead; loaded again once they have ended`,
      ];

const forgottenLine = (days: number): string =>
  `${counted(days, 'day')} the platform no longer has; the stored data is kept`;

function checkLines(check: Check | undefined): string[] {
  if (check === undefined || check.days === 0 || check.repaired.stopped !== undefined) return [];
  const found = check.differing.length;
  const forgotten = check.forgotten.length;
  return [
    `  the last ${counted(check.days, 'final day')} checked against the platform: ` +
      (found + forgotten === 0 ? 'all as stored' : `${counted(found, 'day')} differed and were loaded again`),
    ...(forgotten === 0 ? [] : [`  ${forgottenLine(forgotten)}`]),
  ];
}

function leftLines({ outcome, left }: ProjectExport): string[] {
  const { plan, finishingAt, requests = 0 } = left ?? {};
  if (plan === undefined || plan.days.length === 0) return [];
  const { stopped } = outcome ?? {};
  const resumeAt = stopped instanceof ReadershipError ? stopped.resumeAt : undefined;
  const next = resumeAt === undefined ? '' : `; resumes on ${nextMinute(resumeAt)}`;
  const end = finishingAt === undefined ? '' : `, done around ${nextMinute(finishingAt)}`;
  return [`  ${counted(plan.days.length, 'day')} left, about ${counted(requests, 'request')}${next}${end}`];
}
