import type { CodeHost } from '../agents/code-host.js';
import type { Client } from '../api/client.js';
import type { PlatformClock } from '../api/clock.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import type { DayResult } from '../export/load.js';
import type { ExportPlan } from '../export/plan.js';
import type { Invocation } from '../format/advice.js';
import type { Channel } from '../mail/channel.js';
import type { MailTransport } from '../mail/transport.js';
import type { ShellCommand } from '../shell.js';
import type { Job } from '../state/jobs.js';
import type { Sender } from '../state/sender.js';
import type { State } from '../state/state.js';
import type { Dataset } from '../history/dataset.js';
import type { HistoryStore } from '../history/store.js';
import type { StepEnd, StepName } from '../state/runs.js';

/** What a command that writes works with. A step names the parts that it uses, such as `Using<'store' | 'session'>`. */
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
export type Using<Name extends keyof Parts> = Pick<Parts, Name>;

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
