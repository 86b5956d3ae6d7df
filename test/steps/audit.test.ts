import { expect, it } from 'vitest';
import { addDays } from '../../src/day.js';
import { ConfigurationError } from '../../src/errors.js';
import { auditStep } from '../../src/steps/export.js';
import { openClient } from '../api/open-client.js';
import { openExport, PROJECT, withOneMore } from '../export/open-export.js';
import { partsOf } from './parts-of.js';

it('an audit that fails in one project still reports what it repaired in the others', async () => {
  const { run, clock, history, platform, yesterday, changed, original } = await openExport({ days: 10 });
  await run();
  const at = addDays(yesterday(), -5);
  changed.set(at, withOneMore(original(at)));
  const client = openClient(platform.baseUrl, { now: clock.now, projectId: PROJECT });
  const failing = new ConfigurationError('There is no key of this project');
  const parts = partsOf(history, {
    settings: { projects: [{ id: 'prj_0' }, { id: PROJECT }, { id: 'prj_2' }] },
    platform: {
      clientOf: ({ id }) => {
        if (id !== PROJECT) throw failing;
        return client;
      },
    },
    session: { now: clock.now },
  });
  const { detail, error } = await auditStep(parts, { repair: true });
  const repaired = detail.map(({ project, audit }) => [project.id, audit.repaired?.results.length]);
  expect(repaired).toEqual([[PROJECT, 1]]);
  expect(error).toBe(failing);
});
