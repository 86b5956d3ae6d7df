import type { CodeHost } from '../agents/code-host.js';
import type { Job } from '../agents/job.js';
import type { Client } from '../api/client.js';
import type { PlatformClock } from '../api/clock.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import type { SendingPlace } from '../effects/entries.js';
import type { EffectsJournal } from '../effects/journal.js';
import type { ElsewhereError } from '../effects/place.js';
import type { DayResult } from '../export/load.js';
import type { ExportPlan } from '../export/plan.js';
import type { Invocation } from '../format/advice.js';
import type { Channel } from '../mail/channel.js';
import type { Delivery } from '../mail/delivery.js';
import type { MailTransport } from '../mail/transport.js';
import type { ShellCommand } from '../shell.js';
import type { Dataset } from '../warehouse/dataset/dataset.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { StepEnd, StepName } from './runs.js';

/** What a command that writes works with. A step names the parts that it uses, such as `Using<'store' | 'session'>`. */
export interface Parts {
  readonly workspace: WorkspaceView;
  readonly platform: Platform;
  /** The live database, which has the views and all ledgers. */
  readonly store: Warehouse;
  readonly effects: Effects;
  readonly session: Session;
}
export type Using<Name extends keyof Parts> = Pick<Parts, Name>;

/** What steps know of a workspace: the effective settings, and where its files are, but no secrets. */
export interface WorkspaceView {
  readonly settings: Settings;
  /** The projects that the command applies to. */
  readonly projects: readonly ProjectSettings[];
  /** The directory that may contain the workspace's own `reports/` and `templates/`. */
  readonly workspaceDir: string | undefined;
  /** What messages to people elsewhere repeat in the commands that they advise. */
  readonly invocation: Invocation;
  /** The published history. */
  readonly historyFile: string;
  readonly reportsDir: string;
  /** The Parquet dataset that is published as well, with the command of `publish.then`; undefined if there is none. */
  readonly dataset: (Dataset & { readonly then: ShellCommand | undefined }) | undefined;
}

/** The documentation platform, and the host of its code. */
export interface Platform {
  /** The API of a project. Throws a `ConfigurationError` when its key is missing. */
  readonly clientOf: (project: ProjectSettings) => Client;
  readonly clock: PlatformClock;
  /** Stores how many requests were sent, before the history is published. */
  readonly recordRequests: () => Promise<void>;
  /** Where pull requests are looked up; undefined if not configured. */
  readonly codeHost: CodeHost | undefined;
}

/** What was sent, and what may be sent from here. */
export interface Effects {
  /** The journal of everything that may have been sent. Nothing is sent before it is recorded there. */
  readonly journal: EffectsJournal;
  /** Where this process works. */
  readonly here: SendingPlace;
  /** Set if the workspace sends from another place: this copy sends nothing. */
  readonly elsewhere: ElsewhereError | undefined;
  /** Emails that the journal showed to be of unknown outcome when the database was opened. */
  readonly unknownDeliveries: readonly Delivery[];
  /** Sends emails. Throws a `ConfigurationError` when the mail server's address cannot be read. */
  readonly transport: () => MailTransport;
  /** The configured channels, by name. */
  readonly channels: ReadonlyMap<string, Channel>;
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
