import { PlatformClock } from '../../src/api/clock.js';
import { type Settings, settingsSchema } from '../../src/config/schema.js';
import type { Outgoing, Parts, Platform, Session, WorkspaceView } from '../../src/steps/step.js';
import type { OtherPlaceError } from '../../src/state/workspace.js';
import { Sender } from '../../src/state/sender.js';
import { emptyState } from '../../src/state/open.js';
import type { State } from '../../src/state/state.js';
import type { HistoryStore } from '../../src/history/store.js';
import { NOW } from '../sandbox/open-sandbox.js';

const unused = (): never => {
  throw new Error('no step of this test needs it');
};

/** The clock of a platform that never sends the time. */
const silentClock = (now: () => Date): PlatformClock =>
  new PlatformClock({ baseUrl: 'http://127.0.0.1', now, request: () => Promise.resolve({}), onSkew: unused });

/** A sender that begins no attempt, of a workspace that sends from here, or else from another place. */
export function sendingFrom(otherPlace: OtherPlaceError | undefined): Sender {
  const sender = Object.create(Sender.prototype) as Sender;
  const expectMayPublish = () => Promise.resolve();
  return Object.assign(sender, {
    otherPlace: () => otherPlace,
    expectMayPublish,
    begin: unused,
    refusal: unused,
  });
}

/** What a test gives of each part; `settings` as they are written in `readership.yaml`. */
export interface GivenParts {
  readonly settings?: object;
  readonly workspace?: Partial<WorkspaceView>;
  readonly platform?: Partial<Platform>;
  readonly state?: State;
  readonly sender?: Sender;
  readonly outgoing?: Partial<Outgoing>;
  readonly session?: Partial<Session>;
}

/** A state without anything but its workspace. */
function stateInMemory(): State {
  const state = emptyState();
  // A transaction without conflicts is over when the call returns.
  void state.transaction(() =>
    state.run("INSERT INTO workspace (only, id, machine, host, path) VALUES (1, 'w', 'm', 'web-1', '/data')"),
  );
  return state;
}

/** The parts of a step in tests: configured settings, and only what is given. */
export function partsOf(
  store: HistoryStore,
  { settings: written = {}, workspace, platform, state, sender, outgoing, session }: GivenParts = {},
): Parts {
  const smallest = { baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] };
  const settings: Settings = settingsSchema.parse({ ...smallest, ...written });
  const now = session?.now ?? (() => NOW);
  return {
    workspace: {
      settings,
      settingsDigest: '',
      projects: settings.projects,
      workspaceDir: undefined,
      invocation: {},
      historyFile: '',
      reportsDir: '',
      dataset: undefined,
      ...workspace,
    },
    platform: {
      clientOf: unused,
      clock: silentClock(now),
      recordRequests: () => Promise.resolve(),
      codeHost: undefined,
      ...platform,
    },
    state: state ?? stateInMemory(),
    sender: sender ?? sendingFrom(undefined),
    store,
    outgoing: {
      transport: unused,
      channels: new Map(),
      silentHosts: new Set(),
      ...outgoing,
    },
    session: { now, signal: new AbortController().signal, observer: {}, ...session },
  };
}
