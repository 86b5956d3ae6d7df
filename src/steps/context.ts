import type { CodeHost } from '../agents/pull-requests.js';
import type { Job } from '../agents/ledger.js';
import type { Client } from '../api/client.js';
import type { PlatformClock } from '../api/clock.js';
import type { SharedLimit } from '../budget/ledger.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import type { Shard } from '../config/shard.js';
import type { DayResult } from '../export/load.js';
import type { ExportPlan } from '../export/plan.js';
import type { Channel } from '../mail/channel.js';
import type { MailTransport } from '../mail/transport.js';
import type { Delivery } from '../mail/delivery.js';
import type { EffectsJournal } from '../warehouse/effects.js';
import type { LakePlace } from '../warehouse/lake/storage.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { StepEnd, StepName } from './runs.js';

/** Called with what happens while a step runs. */
export interface Observer {
  readonly onStepStart?: (step: StepName) => void;
  readonly onStepEnd?: (step: StepName, end: StepEnd) => void;
  readonly onExportPlan?: (project: ProjectSettings, plan: ExportPlan) => void;
  readonly onDay?: (project: ProjectSettings, result: DayResult) => void;
  /** Called when an alert or a ping could not be sent. */
  readonly onAlertFailed?: (words: string) => void;
  readonly onJob?: (job: Job) => void;
}

/** The context of every step. */
export interface StepContext {
  readonly settings: Settings;
  readonly projects: readonly ProjectSettings[];
  /** The hourly limits of all projects of the settings. */
  readonly limits: readonly SharedLimit[];
  readonly warehouse: Warehouse;
  /** The journal of everything that may have been sent. Nothing is sent before it is recorded there. */
  readonly journal: EffectsJournal;
  /** Emails that the journal showed to be of unknown outcome when the database was opened. */
  readonly unknownDeliveries: readonly Delivery[];
  /** The API of a project. Throws a `ConfigurationError` when its key is missing. */
  readonly clientOf: (project: ProjectSettings) => Client;
  /** Where pull requests are looked up; undefined if not configured. */
  readonly codeHost?: CodeHost | undefined;
  /** Where emails go. Throws a `ConfigurationError` when the mail server's address cannot be read. */
  readonly transport: () => MailTransport;
  /** The channels that the configuration sets up, by name. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** Where the workspace's own reports and templates are looked for. */
  readonly workspaceDir: string | undefined;
  /** The published history. */
  readonly historyFile: string;
  readonly reportsDir: string;
  /** The lake that the history is published to as well; undefined when there is none. */
  readonly lake: LakePlace | undefined;
  /** The part of the projects that this is about; undefined for all of them. */
  readonly shard: Shard | undefined;
  readonly now: () => Date;
  readonly clock: PlatformClock;
  readonly signal: AbortSignal;
  readonly observer: Observer;
}

/** What a step did. */
export interface StepResult<Detail> {
  readonly detail: Detail;
  /** In a sentence, for the ledger of runs. */
  readonly summary: string;
  /** The error that kept part of the work from being done. */
  readonly error?: unknown;
}

/**
 * The same context with the earlier of two clocks, this machine's and the platform's, so that a day is loaded or
 * emailed only once it has ended by both. Asks the platform for the time unless a response has already told it.
 */
export async function byBothClocks(context: StepContext): Promise<StepContext> {
  if (context.projects.length > 0) await context.clock.ask();
  return { ...context, now: context.clock.earlier };
}
