import { max } from 'date-fns';
import { stat } from 'node:fs/promises';
import pLimit from 'p-limit';
import { ClockError } from '../api/errors.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, type Day, lastEndedDay } from '../day.js';
import { exportInStages, type ExportOutcome, type ExportTask } from '../export/export.js';
import { type ExportForecast, forecastExport, hasHoles } from '../export/forecast.js';
import { type DayResult, errorsOfLoad } from '../export/load.js';
import { resolveRange } from '../export/range.js';
import { type Audit, auditHistory } from '../export/verify.js';
import { moment, plainDayRange } from '../format/days.js';
import { bytes, counted } from '../format/numbers.js';
import { publishedLake, readPublications, recordLake, recordPublications } from '../warehouse/identity.js';
import { expectLatestIn, type LakeChange, type LakeOptions, publishLake } from '../warehouse/lake/lake.js';
import { isPublished, publish } from '../warehouse/publish.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { loadNotes } from './notes.js';
import { byBothClocks, eachProject, type StepContext, type StepResult, withOutage } from './step.js';

/** The export of a project; `outcome` is undefined if the platform has no views of it yet. */
export interface ProjectExport {
  readonly project: ProjectSettings;
  readonly outcome: ExportOutcome | undefined;
  /** The remaining work, if the export was stopped. */
  readonly left?: ExportForecast | undefined;
}

/** What the user wants: bounds, both included, and whether to read final days again. */
interface ExportBounds {
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly reload?: boolean | undefined;
}

/**
 * Loads the due days of every project in stages: the latest days of all projects come before older
 * days of any. An error in one project does not affect the others.
 */
export async function exportStep(
  context: StepContext,
  bounds: ExportBounds = {},
): Promise<StepResult<ProjectExport[]>> {
  const { detail: done, thrown } = await exportInTurns(await byBothClocks(context), bounds);
  const detail = await withForecasts(context, bounds, done);
  const outcomes = detail.flatMap(({ outcome }) => outcome ?? []);
  const attempted = outcomes.flatMap(({ results }) => results);
  const failed = attempted.filter((result) => result.outcome === 'failed').length;
  const summary = `${attempted.length - failed} days loaded, ${failed} failed${leftWords(detail)}`;
  const errors = [...thrown, ...outcomes.flatMap(errorsOfLoad), ...withheldDays(context, bounds)];
  return withOutage({ detail, summary }, errors);
}

/** Adds the remaining work of the projects whose export was stopped. */
async function withForecasts(
  { warehouse, limits, settings, now }: StepContext,
  bounds: ExportBounds,
  done: readonly ProjectExport[],
): Promise<ProjectExport[]> {
  const stopped = done.filter(({ outcome }) => outcome?.stopped !== undefined);
  if (stopped.length === 0) return [...done];
  const projects = stopped.map(({ project }) => project);
  const forecasts = await forecastExport(warehouse, limits, settings, { ...bounds, projects }, now());
  return done.map((one) => ({
    ...one,
    left: forecasts.find(({ project }) => project === one.project),
  }));
}

function leftWords(detail: readonly ProjectExport[]): string {
  const left = detail.flatMap((one) => one.left ?? []);
  const requests = left.reduce((sum, one) => sum + one.requests, 0);
  if (requests === 0) return '';
  const ends = left.flatMap(({ finishingAt }) => finishingAt ?? []);
  const end = ends.length < left.length ? '' : `, done around ${moment(max(ends))}`;
  return `; about ${counted(requests, 'request')} left${end}`;
}

/**
 * An error if days to export have ended on this machine but not on the platform, unless its clock is
 * only slightly behind.
 */
function withheldDays({ clock, now }: StepContext, { to }: ExportBounds): ClockError[] {
  const [ended, both] = [lastEndedDay(now()), lastEndedDay(clock.earlier())];
  const here = to !== undefined && to < ended ? to : ended;
  if (!clock.isFarOff() || here <= both) return [];
  const days = plainDayRange({ first: addDays(both, 1), last: here });
  return [
    new ClockError(
      `${days} not loaded: not over yet by the platform's clock, which is behind this machine's. ` +
        'Set whichever clock is wrong: readership doctor',
    ),
  ];
}

/**
 * Exports all projects together, over shared connections. A stage begins when all have finished the
 * previous one.
 */
async function exportInTurns(context: StepContext, bounds: ExportBounds) {
  const { projects, limits, settings, warehouse, now } = context;
  const backfilling = new Set<string>();
  for (const limit of limits)
    if (await hasHoles(warehouse, limit.projects, settings.history, now()))
      for (const { id } of limit.projects) backfilling.add(id);
  const inTurn = pLimit(settings.history.concurrency);
  const detail: ProjectExport[] = [];
  const thrown: unknown[] = [];
  let underWay = projects.map((project) => ({
    project,
    stages: exportProject(context, project, {
      ...bounds,
      inTurn,
      isBackfilling: backfilling.has(project.id),
    }),
  }));
  while (underWay.length > 0) {
    const stages = await Promise.allSettled(underWay.map((one) => one.stages.next()));
    const withMore: typeof underWay = [];
    for (const [index, one] of underWay.entries()) {
      const stage = stages[index];
      if (stage?.status === 'rejected') thrown.push(stage.reason);
      else if (stage?.value.done === true) detail.push({ project: one.project, outcome: stage.value.value });
      else withMore.push(one);
    }
    underWay = withMore;
  }
  detail.sort((one, other) => projects.indexOf(one.project) - projects.indexOf(other.project));
  return { detail, thrown };
}

async function* exportProject(
  { settings, warehouse, clientOf, clock, now, signal, observer }: StepContext,
  project: ProjectSettings,
  bounds: ExportBounds & Pick<ExportTask, 'inTurn' | 'isBackfilling'>,
): AsyncGenerator<undefined, ExportOutcome | undefined> {
  signal.throwIfAborted();
  const client = clientOf(project);
  const common = { warehouse, client, project: project.id, signal };
  const { start, settleDays, concurrency } = settings.history;
  const range = await resolveRange({ ...common, ...bounds, start, now: now() });
  if (range === undefined) return undefined;
  return yield* exportInStages({
    ...common,
    range,
    settleDays,
    concurrency,
    now,
    latestTime: clock.later,
    reload: bounds.reload,
    inTurn: bounds.inTurn,
    isBackfilling: bounds.isBackfilling,
    onPlan: (plan) => observer.onExportPlan?.(project, plan),
    onDay: (result) => observer.onDay?.(project, result),
  });
}

/** What the audit of a project found. */
export interface ProjectAudit {
  readonly project: ProjectSettings;
  readonly audit: Audit;
}

/** Compares the settled history of every project with the platform. A failed repair counts as an error. */
export async function auditStep(given: StepContext, repair: boolean): Promise<StepResult<ProjectAudit[]>> {
  const context = await byBothClocks(given);
  const { settings, warehouse, clientOf, now, signal, observer } = context;
  const { settleDays, concurrency } = settings.history;
  const { results: detail, errors } = await eachProject(context, async (project) => {
    const task = {
      warehouse,
      client: clientOf(project),
      project: project.id,
      settleDays,
      concurrency,
      now,
      signal,
      onDay: (result: DayResult) => observer.onDay?.(project, result),
    };
    return { project, audit: await auditHistory(task, repair) };
  });
  const repairs = detail.flatMap(({ audit }) => audit.repaired ?? []);
  const findings = detail.flatMap(({ project, audit: { differing, damaged } }) =>
    differing.length + damaged.length === 0 ? [] : `${project.id}: ${[...differing, ...damaged].join(', ')}`,
  );
  const summary = findings.length === 0 ? 'no days differ' : `days that differ: ${findings.join('; ')}`;
  return withOutage({ detail, summary }, [...errors, ...repairs.flatMap(errorsOfLoad)]);
}

/** The size of the published history, and the changes to the lake, if there is one. */
export interface Published {
  readonly bytes: number;
  readonly lake?: LakeChange;
}

/** Whether everything stored is published, in the history and in the lake, if there is one. */
export const isUpToDate = async ({ warehouse, historyFile, lake, now }: StepContext): Promise<boolean> =>
  (lake === undefined || (await publishedLake(warehouse)) === lake.location) &&
  isPublished(warehouse, historyFile, now());

/**
 * Publishes the history, and the lake if there is one, when readers would see a difference; always
 * with `isWhole`. If the lake cannot be written or the notes cannot be read, the history is published
 * nevertheless: the result contains the error, and the next publish retries.
 */
export async function publishStep(
  context: StepContext,
  {
    isWhole = false,
    isRebuild,
  }: { readonly isWhole?: boolean; readonly isRebuild?: boolean | undefined } = {},
): Promise<StepResult<Published>> {
  const { warehouse, historyFile, lake: place, shard, settings, here, elsewhere, now, signal } = context;
  // The history is published even if the notes have problems; those published before are kept.
  const errors = await loadNotes(context).then(
    () => [],
    (error: unknown) => [error],
  );
  const isDue = isWhole || !(await isPublished(warehouse, historyFile, now()));
  // A clock that is ahead would remove replaced files that readers still need.
  const isLakeDue = place !== undefined && (isDue || (await publishedLake(warehouse)) !== place.location);
  const at = isLakeDue ? (await byBothClocks(context)).now() : now();
  const options = place && { place, shard, source: settings.baseUrl, here, now: at, signal, isRebuild };
  const refusal =
    isDue && options && elsewhere === undefined ? await refusalBy(warehouse, options) : elsewhere;
  // Recorded first, because the lake is out of date until it is published too.
  if (isDue)
    await warehouse.transaction(async ({ connection }) => {
      await recordLake(connection, null);
      // Before publishing, so that a restored history knows it too. Not by an older state, which would
      // otherwise count up until it is taken for the newest.
      if (options !== undefined && refusal === undefined)
        await recordPublications(connection, (await readPublications(connection)) + 1);
    });
  const size = isDue ? await publish(warehouse, historyFile, isWhole) : (await stat(historyFile)).size;
  const summary = isDue ? `${bytes(size)} published` : 'nothing changed since the last time';
  const detail = { bytes: size };
  if (options === undefined || !isLakeDue) return withOutage({ detail, summary }, errors);
  if (refusal !== undefined) return withOutage({ detail, summary }, [refusal, ...errors]);
  try {
    const lake = await publishLake(warehouse, options);
    const words = `${summary}; the lake: ${lakeSummary(lake)}`;
    return withOutage({ detail: { bytes: size, lake }, summary: words }, errors);
  } catch (error) {
    return withOutage({ detail, summary }, [error, ...errors]);
  }
}

/** Why the lake cannot be published: this is a copy or an older state of the workspace, or it cannot be read. */
const refusalBy = (warehouse: Warehouse, options: LakeOptions): Promise<unknown> =>
  expectLatestIn(warehouse, options).then(
    () => undefined,
    (error: unknown) => error,
  );

/** The changes to a lake, without a final period. */
export function lakeSummary({
  files,
  written,
  replaced,
  rebuilt,
  sentBytes,
  receivedBytes,
}: LakeChange): string {
  const again =
    rebuilt.length === 0 ? '' : `, ${rebuilt.join(', ')} restored, which another program had changed`;
  const done = `${files} files, ${written} written, ${replaced} replaced${again}`;
  if (sentBytes + receivedBytes === 0) return done;
  const [sent, received] = [sentBytes, receivedBytes].map((bytes) => (bytes / 1e6).toFixed(1));
  return `${done}, ${sent} MB sent, ${received} MB read`;
}
