import { PlatformClock } from '../../src/api/clock.js';
import { type Settings, settingsSchema } from '../../src/config/schema.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import type { Effects, Parts, Platform, Session, WorkspaceView } from '../../src/steps/parts.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

const unused = (): never => {
  throw new Error('no step of this test needs it');
};

/** The clock of a platform that never sends the time. */
const silentClock = (now: () => Date): PlatformClock =>
  new PlatformClock({ baseUrl: 'http://127.0.0.1', now, ask: () => Promise.resolve({}), onSkew: unused });

/** What a test gives of each part; `settings` as they are written in `readership.yaml`. */
export interface GivenParts {
  readonly settings?: object;
  readonly workspace?: Partial<WorkspaceView>;
  readonly platform?: Partial<Platform>;
  readonly effects?: Partial<Effects>;
  readonly session?: Partial<Session>;
}

/** The parts of a step in tests: configured settings, and only what is given. */
export function partsOf(
  store: Warehouse,
  { settings: written = {}, workspace, platform, effects, session }: GivenParts = {},
): Parts {
  const smallest = { baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] };
  const settings: Settings = settingsSchema.parse({ ...smallest, ...written });
  const now = session?.now ?? (() => NOW);
  return {
    workspace: {
      settings,
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
    store,
    effects: {
      journal: new Proxy(Object.create(EffectsJournal.prototype) as EffectsJournal, { get: unused }),
      here: { machine: 'm', host: 'web-1', path: '/data' },
      elsewhere: undefined,
      unknownDeliveries: [],
      transport: unused,
      channels: new Map(),
      ...effects,
    },
    session: { now, signal: new AbortController().signal, observer: {}, ...session },
  };
}
