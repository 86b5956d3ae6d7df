import { randomUUID } from 'node:crypto';
import type { Job } from '../agents/ledger.js';
import type { HeldOutPage } from '../agents/select.js';
import type { CodeHost } from '../agents/code-host.js';
import type { Client } from '../api/client.js';
import type { PlatformClock } from '../api/clock.js';
import type { SharedLimit } from '../budget/ledger.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { messageOf, ReadershipError } from '../errors.js';
import type { DayResult } from '../export/load.js';
import type { ExportPlan } from '../export/plan.js';
import type { Channel } from '../mail/channel.js';
import type { Delivery } from '../mail/delivery.js';
import type { MailTransport } from '../mail/transport.js';
import type { EffectsJournal } from '../effects/journal.js';
import type { Place } from '../effects/entries.js';
import type { ElsewhereError } from '../effects/place.js';
import type { DatasetPlace } from '../warehouse/dataset/store.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { recordStepEnd, recordStepStart, type StepEnd, type StepName, type StepOutcome } from './runs.js';

/** Called with what happens while a step runs. */
export interface Observer {
  readonly onStepStart?: (step: StepName) => void;
  readonly onStepEnd?: (step: StepName, end: StepEnd) => void;
  readonly onExportPlan?: (project: ProjectSettings, plan: ExportPlan) => void;
  readonly onDay?: (project: ProjectSettings, result: DayResult) => void;
  /** Called when an alert or a ping could not be sent. */
  readonly onAlertFailed?: (words: string) => void;
  readonly onJob?: (job: Job) => void;
  /** Called with all pages that chance holds out now, before any job is sent. */
  readonly onHeldOut?: (project: ProjectSettings, pages: readonly HeldOutPage[]) => void;
}

/** What steps know of a workspace: the effective settings, and where its files are, but no secrets. */
export interface WorkspaceView {
  readonly settings: Settings;
  /** The projects that the command applies to. */
  readonly projects: readonly ProjectSettings[];
  /** The directory that may contain the workspace's own `reports/` and `templates/`. */
  readonly workspaceDir: string | undefined;
  /** The published history. */
  readonly historyFile: string;
  readonly reportsDir: string;
  /** Where to publish a Parquet dataset as well; undefined if nowhere. */
  readonly dataset: DatasetPlace | undefined;
}

/** The context of every step. */
export interface StepContext extends WorkspaceView {
  /** The hourly limits of all projects of the settings. */
  readonly limits: readonly SharedLimit[];
  readonly warehouse: Warehouse;
  /** The journal of everything that may have been sent. Nothing is sent before it is recorded there. */
  readonly journal: EffectsJournal;
  /** Where this process works. */
  readonly here: Place;
  /** Set if the workspace sends from another place: this copy sends nothing. */
  readonly elsewhere?: ElsewhereError | undefined;
  /** Emails that the journal showed to be of unknown outcome when the database was opened. */
  readonly unknownDeliveries: readonly Delivery[];
  /** The API of a project. Throws a `ConfigurationError` when its key is missing. */
  readonly clientOf: (project: ProjectSettings) => Client;
  /** Where pull requests are looked up; undefined if not configured. */
  readonly codeHost?: CodeHost | undefined;
  /** Sends emails. Throws a `ConfigurationError` when the mail server's address cannot be read. */
  readonly transport: () => MailTransport;
  /** The configured channels, by name. */
  readonly channels: ReadonlyMap<string, Channel>;
  readonly now: () => Date;
  readonly clock: PlatformClock;
  readonly signal: AbortSignal;
  readonly observer: Observer;
}

/** What a step did. */
export interface StepResult<Detail> {
  readonly detail: Detail;
  /** A phrase for the ledger of runs. */
  readonly summary: string;
  /** When to run the step again, before its schedule says so, for what it left waiting. */
  readonly resumeAt?: Date | undefined;
  /** The error that kept part of the work from being done. */
  readonly error?: unknown;
}

type Work<Detail> = () => Promise<StepResult<Detail>>;

/**
 * The same context with the earlier of two clocks, this machine's and the platform's, so that a day
 * is loaded or emailed only once it has ended by both. Asks the platform for the time unless a
 * response has already told it.
 */
export async function byBothClocks(context: StepContext): Promise<StepContext> {
  if (context.projects.length > 0) await context.clock.ask();
  return { ...context, now: context.clock.earlier };
}

/** What kept a step from finishing, and what that means for it. */
export interface StepOutage {
  readonly step: StepName;
  readonly outcome: Exclude<StepOutcome, 'done'>;
  readonly error: unknown;
}

/** Runs steps one after another, each recorded in the ledger of runs. */
export class StepRunner {
  readonly outages: StepOutage[] = [];
  readonly #run = randomUUID();

  constructor(
    private readonly context: StepContext,
    private readonly due?: ReadonlySet<StepName>,
  ) {}

  isToDo(name: StepName): boolean {
    return !this.context.signal.aborted && this.due?.has(name) !== false;
  }

  /**
   * The detail of the step's result; undefined when it threw, is not due, or was not begun after an
   * interruption.
   */
  async step<Detail>(name: StepName, work: Work<Detail>): Promise<Detail | undefined> {
    const { warehouse, now, observer } = this.context;
    if (!this.isToDo(name)) return undefined;
    observer.onStepStart?.(name);
    await recordStepStart(warehouse, this.#run, name, now());
    const { result, outcome, error } = await this.#attempt(name, work);
    const words = [result?.summary, error === undefined ? undefined : messageOf(error)];
    const summary = words.filter((one) => one !== undefined).join('; ');
    const resumeAt = error instanceof ReadershipError ? error.resumeAt : result?.resumeAt;
    const end = { outcome, summary, resume_at: resumeAt ?? null, now: now() };
    await recordStepEnd(warehouse, this.#run, name, end);
    observer.onStepEnd?.(name, end);
    return result?.detail;
  }

  /** As `step`, for work requested outside the schedule: it is not recorded, so the step itself stays due. */
  async aside<Detail>(name: StepName, work: Work<Detail>): Promise<Detail | undefined> {
    return (await this.#attempt(name, work)).result?.detail;
  }

  async #attempt<Detail>(step: StepName, work: Work<Detail>) {
    const { signal } = this.context;
    let result: StepResult<Detail> | undefined;
    let error: unknown;
    try {
      result = await work();
      error = result.error;
    } catch (thrown) {
      error = thrown;
    }
    // An interrupted step may have left work undone without an error, so it never counts as done.
    if (signal.aborted) error = signal.reason;
    if (error === undefined) return { result, outcome: 'done', error } as const;
    const outcome = signal.aborted ? 'interrupted' : isTemporary(error) ? 'later' : 'failed';
    this.outages.push({ step, outcome, error });
    return { result, outcome, error } as const;
  }
}

const isTemporary = (error: unknown): boolean => error instanceof ReadershipError && error.exitCode === 75;

/** Works on one project after another, until an interruption. An error in one does not affect the others. */
export async function eachProject<Result>(
  { projects, signal }: StepContext,
  work: (project: ProjectSettings) => Promise<Result>,
): Promise<{ results: Result[]; errors: unknown[] }> {
  const results: Result[] = [];
  const errors: unknown[] = [];
  for (const project of projects) {
    if (signal.aborted) break;
    try {
      results.push(await work(project));
    } catch (error) {
      errors.push(error);
    }
  }
  return { results, errors };
}

/**
 * The result of a step, with the worst of its errors, if there are any: a pause must not hide what a
 * person has to fix.
 */
export function withOutage<Detail>(
  result: StepResult<Detail>,
  errors: readonly unknown[],
): StepResult<Detail> {
  const found = errors.filter((error) => error !== undefined);
  return { ...result, error: found.find((error) => !isTemporary(error)) ?? found[0] };
}
