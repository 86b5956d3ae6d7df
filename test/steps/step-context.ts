import { PlatformClock } from '../../src/api/clock.js';
import { sharedLimits } from '../../src/app/workspace.js';
import { type Settings, settingsSchema } from '../../src/config/schema.js';
import type { StepContext } from '../../src/steps/step.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

const unused = (): never => {
  throw new Error('no step of this test needs it');
};

/** The clock of a platform that never sends the time. */
const silentClock = (now: () => Date): PlatformClock =>
  new PlatformClock({ baseUrl: 'http://127.0.0.1', now, ask: () => Promise.resolve({}), onSkew: unused });

const HERE = { machine: 'm', host: 'web-1', path: '/data' };

/** The context of a step in tests: configured settings, and only the dependencies given. */
export function stepContext(
  warehouse: Warehouse,
  { settings: changes = {}, ...given }: Partial<Omit<StepContext, 'settings'>> & { settings?: object } = {},
): StepContext {
  const settings: Settings = settingsSchema.parse({
    ...{ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] },
    ...changes,
  });
  return {
    journal: new Proxy(Object.create(EffectsJournal.prototype) as EffectsJournal, {
      get: unused,
    }),
    ...{ settings, projects: settings.projects, warehouse, workspaceDir: undefined },
    limits: sharedLimits({ settings, configuration: undefined }),
    ...{
      dataset: undefined,
      channels: new Map(),
      historyFile: '',
      reportsDir: '',
    },
    ...{ here: HERE, unknownDeliveries: [], clientOf: unused, transport: unused, observer: {} },
    ...{ now: () => NOW, clock: silentClock(given.now ?? (() => NOW)), signal: new AbortController().signal },
    ...given,
  };
}
