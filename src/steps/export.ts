import { addHours, min } from 'date-fns';
import pLimit, { type LimitFunction } from 'p-limit';
import { ClockError } from '../api/errors.js';
import { READS_AT_ONCE } from '../api/transport.js';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, lastEndedDay } from '../day.js';
import { ReadershipError } from '../errors.js';
import { readDayRecords } from '../export/day-records.js';
import { exportInStages, type ExportOutcome } from '../export/export.js';
import { errorsOfLoad, type LoadTask } from '../export/load.js';
import { type ExportPlan, type PlannedExport, planProject } from '../export/plan.js';
import { type ExportBounds, resolveRange } from '../export/range.js';
import { type Audit, auditHistory } from '../export/verify.js';
import { plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { byBothClocks, eachProject, type StepResult, type Parts, withOutage } from './step.js';

/** The export of a project; `outcome` is undefined if the platform has no views of it yet. */
export interface ProjectExport {
  readonly project: ProjectSettings;
  readonly outcome: ExportOutcome | undefined;
  /** The remaining work, if the export was stopped. */
  readonly left?: PlannedExport | undefined;
}

/**
 * Loads the due days of every project in stages: the latest days of all projects come before older
 * days of any. An error in one project does not affect the others.
 */
export async function exportStep(
  parts: Parts,
  bounds: ExportBounds = {},
): Promise<StepResult<ProjectExport[]>> {
  // Also what was read before a pause, an error or a signal.
  const { detail: done, thrown } = await exportInTurns(await byBothClocks(parts), bounds).finally(() =>
    parts.store.writeWaiting(),
  );
  const detail = await withWhatIsLeft(parts, bounds, done);
  const outcomes = detail.flatMap(({ outcome }) => outcome ?? []);
  const attempted = outcomes.flatMap(({ results }) => results);
  const failed = attempted.filter((result) => result.outcome === 'failed').length;
  const loaded = counted(attempted.length - failed, 'day');
  const summary = `${loaded} loaded${failed === 0 ? '' : `, ${failed} failed`}${leftWords(detail)}`;
  const errors = [...thrown, ...outcomes.flatMap(errorsOfLoad), withheldDays(parts, bounds)];
  // Readers would take a history without days for a site without views.
  if (errors.every((error) => error === undefined)) await parts.store.create();
  return withOutage({ detail, summary, dueAt: nextExport(parts, detail) }, errors);
}

/** When the next export is scheduled. Days that failed before and wait for their turn are looked at again within the hour. */
function nextExport({ workspace, session }: Parts, detail: readonly ProjectExport[]): Date {
  const { export: expression, timezone } = workspace.settings.schedule;
  const now = session.now();
  const isWaiting = detail.some(({ outcome }) => outcome !== undefined && outcome.plan.waiting.length > 0);
  const next = nextScheduled(expression, timezone, now);
  return isWaiting ? min([next, addHours(now, 1)]) : next;
}

/** Adds the remaining work of the projects whose export was stopped. */
const withWhatIsLeft = (
  { workspace: { settings }, state, store, session: { now } }: Parts,
  bounds: ExportBounds,
  done: readonly ProjectExport[],
): Promise<ProjectExport[]> =>
  Promise.all(
    done.map(async (one) => {
      if (one.outcome?.stopped === undefined) return one;
      const records = await readDayRecords({ history: store, state }, one.project.id);
      return { ...one, left: planProject(one.project, records, state, settings, bounds, now()) };
    }),
  );

/** What is left after a pause. */
function leftWords(detail: readonly ProjectExport[]): string {
  const paused = detail.filter(
    ({ outcome }) => outcome?.stopped instanceof ReadershipError && outcome.stopped.resumeAt !== undefined,
  );
  const requests = paused.reduce((sum, { left }) => sum + (left?.requests ?? 0), 0);
  return requests === 0 ? '' : `; about ${counted(requests, 'request')} left`;
}

/**
 * An error if days to export have ended on this machine but not on the platform, unless its clock is
 * only slightly behind.
 */
function withheldDays(
  { platform: { clock }, session: { now } }: Parts,
  { to }: ExportBounds,
): ClockError | undefined {
  const [ended, both] = [lastEndedDay(now()), lastEndedDay(clock.earlier())];
  const here = to !== undefined && to < ended ? to : ended;
  if (!clock.isFarOff() || here <= both) return undefined;
  const days = plainDayRange({ first: addDays(both, 1), last: here });
  return new ClockError(
    `${days} not loaded: not over yet by the platform's clock, which is behind this machine's. ` +
      `Correct the clock that is wrong. To compare them: readership doctor`,
  );
}

/**
 * Exports all projects together, each over its share of the connections. None goes on to its past before all have
 * their latest days.
 */
async function exportInTurns(parts: Parts, bounds: ExportBounds) {
  const { projects } = parts.workspace;
  const underWay = projects.map((project) => {
    const inTurn = pLimit(Math.ceil(READS_AT_ONCE / projects.length));
    const stages = exportProject(parts, project, bounds, inTurn);
    return { project, stages, latest: stages.next() };
  });
  await Promise.allSettled(underWay.map(({ latest }) => latest));
  const exports = await Promise.allSettled(
    underWay.map(async ({ project, stages, latest }): Promise<ProjectExport> => {
      const { done, value: outcome } = await latest;
      return { project, outcome: done === true ? outcome : (await stages.next()).value };
    }),
  );
  const detail = exports.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  await parts.platform.recordRequests();
  const thrown = exports.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
  return { detail, thrown };
}

async function* exportProject(
  parts: Parts,
  project: ProjectSettings,
  bounds: ExportBounds,
  inTurn: LimitFunction,
): AsyncGenerator<undefined, ExportOutcome | undefined> {
  const { workspace, session } = parts;
  session.signal.throwIfAborted();
  const task = taskOf(parts, project, inTurn);
  const range = await resolveRange({ ...task, ...bounds, start: workspace.settings.history.start });
  if (range === undefined) return undefined;
  const onPlan = (plan: ExportPlan) => session.observer.onExportPlan?.(project, plan);
  return yield* exportInStages({ ...task, range, reload: bounds.reload, onPlan });
}

/** How days of a project are read and stored. */
const taskOf = (
  { workspace, platform, state, store, session }: Parts,
  project: ProjectSettings,
  inTurn: LimitFunction,
): LoadTask => ({
  history: store,
  state,
  client: platform.clientOf(project),
  project: project.id,
  settleDays: workspace.settings.history.settleDays,
  inTurn,
  now: session.now,
  signal: session.signal,
  onDay: (result) => session.observer.onDay?.(project, result),
});

/** What the audit of a project found. */
export interface ProjectAudit {
  readonly project: ProjectSettings;
  readonly audit: Audit;
}

/** Compares the settled history of every project with the platform. A failed repair counts as an error. */
export async function auditStep(
  given: Parts,
  how: { readonly repair: boolean },
): Promise<StepResult<ProjectAudit[]>> {
  const parts = await byBothClocks(given);
  const { platform, store } = parts;
  const inTurn = pLimit(READS_AT_ONCE);
  const { results: detail, errors } = await eachProject(parts, async (project) => {
    return { project, audit: await auditHistory(taskOf(parts, project, inTurn), how) };
  }).finally(() => store.writeWaiting());
  await platform.recordRequests();
  const repairs = detail.flatMap(({ audit }) => audit.repaired ?? []);
  const findings = detail.flatMap(({ project, audit: { differing } }) =>
    differing.length === 0 ? [] : `${project.id}: ${differing.join(', ')}`,
  );
  const summary = findings.length === 0 ? 'no days differ' : `days that differ: ${findings.join('; ')}`;
  return withOutage({ detail, summary }, [...errors, ...repairs.flatMap(errorsOfLoad)]);
}
