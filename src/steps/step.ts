import { randomUUID } from 'node:crypto';
import type { CodeHost } from '../agents/code-host.js';
import type { Client } from '../api/client.js';
import type { PlatformClock } from '../api/clock.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import type { DayResult } from '../export/load.js';
import type { ExportPlan } from '../export/plan.js';
import type { Invocation } from '../format/advice.js';
import type { Channel } from '../mail/channel.js';
import type { MailTransport } from '../mail/transport.js';
import type { Job } from '../state/jobs.js';
import type { Sender } from '../state/sender.js';
import type { State } from '../state/state.js';
import type { Dataset } from '../history/dataset.js';
import type { HistoryStore } from '../history/store.js';
import {
  recordStepEnd,
  recordStepStart,
  type StepEnd,
  type StepName,
  type StepOutcome,
} from '../state/runs.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readWorkspaceRow } from '../state/workspace.js';

/** What a command that writes, and its steps, work with. */
export interface Parts {
  readonly workspace: WorkspaceView;
  readonly platform: Platform;
  /** What Readership did and decided. */
  readonly state: State;
  /** Begins each attempt to send something. */
  readonly sender: Sender;
  /** The history, which has the views; opened when it is first used. */
  readonly store: HistoryStore;
  readonly outgoing: Outgoing;
  readonly session: Session;
}

/** A command for `sh -c`. */
export interface ShellCommand {
  readonly command: string;
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** What steps know of a workspace: the effective settings, and where its files are, but no secrets. */
export interface WorkspaceView {
  readonly settings: Settings;
  /** Of the settings and secrets: differs when any of them was changed. */
  readonly settingsDigest: string;
  /** The projects that the command applies to. */
  readonly projects: readonly ProjectSettings[];
  /** The directory that may contain the workspace's own `reports/` and `templates/`. */
  readonly workspaceDir: string | undefined;
  /** The options that advised commands repeat in emails and alerts. */
  readonly invocation: Invocation;
  /** The history. */
  readonly historyFile: string;
  readonly reportsDir: string;
  /** The Parquet dataset that is published, with the command of `publish.then`; undefined if there is none. */
  readonly dataset: (Dataset & { readonly then: ShellCommand | undefined }) | undefined;
}

/** The documentation platform, and the host of its code. */
export interface Platform {
  /** The API of a project. Throws a `ConfigurationError` when its key is missing. */
  readonly clientOf: (project: ProjectSettings) => Client;
  readonly clock: PlatformClock;
  /** Stores how many requests were sent, before the end of a step. */
  readonly recordRequests: () => Promise<void>;
  /** Where pull requests are looked up; undefined if not configured. */
  readonly codeHost: CodeHost | undefined;
}

/** The ways to send reports and alerts. */
export interface Outgoing {
  /** Sends emails. Throws a `ConfigurationError` when the mail server's address cannot be read. */
  readonly transport: () => MailTransport;
  /** The configured channels, by name. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** The hosts of channels that did not answer since the command began. */
  readonly silentHosts: Set<string>;
}

/** One run of a command, or one tick of the service. */
export interface Session {
  readonly now: () => Date;
  readonly signal: AbortSignal;
  readonly observer: Observer;
}

/** Called with what happens while a step runs. */
export interface Observer {
  readonly onStepStart?: (step: StepName) => void;
  readonly onStepEnd?: (step: StepName, end: StepEnd) => void;
  readonly onExportPlan?: (project: ProjectSettings, plan: ExportPlan) => void;
  readonly onDay?: (project: ProjectSettings, result: DayResult) => void;
  /** Called when an alert or a ping could not be sent. */
  readonly onAlertFailed?: (words: string) => void;
  readonly onJob?: (job: Job) => void;
  /** Called with each line that `publish.then` prints. */
  readonly onThenOutput?: (line: string) => void;
}

/** What a step did. */
export interface StepResult<Detail> {
  readonly detail: Detail;
  /** A phrase for the table of runs. */
  readonly summary: string;
  /** When to run the step again, before its schedule says so, for what it left waiting. */
  readonly resumeAt?: Date | undefined;
  /** When the step may have something to do again although nothing has changed; by default, the next day. */
  readonly dueAt?: Date | undefined;
  /** The error that kept part of the work from being done. */
  readonly error?: unknown;
}

type StepWork<Detail> = () => Promise<StepResult<Detail>>;

/**
 * The same parts with the earlier of two clocks, this machine's and the platform's, so that a day
 * is loaded or emailed only once it has ended by both. Asks the platform for the time unless a
 * response has already told it.
 */
export async function byBothClocks(parts: Parts): Promise<Parts> {
  const { clock } = parts.platform;
  if (parts.workspace.projects.length > 0) await clock.update();
  return { ...parts, session: { ...parts.session, now: clock.earlier } };
}

/** What kept a step from finishing, and what that means for it. */
export interface StepOutage {
  readonly step: StepName;
  readonly outcome: Exclude<StepOutcome, 'done'>;
  readonly error: unknown;
}

/** Runs steps one after another, each recorded as a run. */
export class StepRunner {
  readonly outages: StepOutage[] = [];
  /** The steps that are done, with `workspace.changes` as of their end, and when they are due again in any case. */
  readonly done = new Map<StepName, { readonly changes: number; readonly dueAt: readonly Date[] }>();
  readonly #run = randomUUID();

  constructor(
    private readonly parts: Parts,
    private readonly due?: ReadonlySet<StepName>,
  ) {}

  isToDo(name: StepName): boolean {
    return !this.parts.session.signal.aborted && this.due?.has(name) !== false;
  }

  /**
   * The detail of the step's result; undefined when it threw, is not due, or was not begun after an
   * interruption.
   */
  async step<Detail>(name: StepName, work: StepWork<Detail>): Promise<Detail | undefined> {
    const { state, session } = this.parts;
    const { now, observer } = session;
    if (!this.isToDo(name)) return undefined;
    observer.onStepStart?.(name);
    await recordStepStart(state, this.#run, name, now());
    const { result, outcome, error } = await this.#attempt(name, work);
    const words = [result?.summary, error === undefined ? undefined : messageOf(error)];
    const summary = words.filter((one) => one !== undefined).join('; ');
    const resumeAt = error instanceof ReadershipError ? error.resumeAt : result?.resumeAt;
    const end = { outcome, summary, resume_at: resumeAt ?? null, now: now() };
    await recordStepEnd(state, this.#run, name, end);
    if (outcome === 'done')
      this.done.set(name, {
        changes: readWorkspaceRow(state).changes,
        dueAt: [resumeAt, result?.dueAt].flatMap((at) => at ?? []),
      });
    observer.onStepEnd?.(name, end);
    return result?.detail;
  }

  /** As `step`, for work requested outside the schedule: it is not recorded, so the step itself stays due. */
  async aside<Detail>(name: StepName, work: StepWork<Detail>): Promise<Detail | undefined> {
    return (await this.#attempt(name, work)).result?.detail;
  }

  async #attempt<Detail>(step: StepName, work: StepWork<Detail>) {
    const { signal } = this.parts.session;
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
  { workspace: { projects }, session: { signal } }: Parts,
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
