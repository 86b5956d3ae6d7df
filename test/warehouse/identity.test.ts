import { appendFile, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { StorageError } from '../../src/errors.js';
import type { Entry } from '../../src/effects/entries.js';
import { placeDigest, placeOf } from '../../src/effects/place.js';
import { agreeOnWorkspace, readPlace, workspaceIdOf } from '../../src/warehouse/identity.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { journalOf, liveWarehouse } from '../open-warehouse.js';

const PLACE = { here: { machine: 'm', host: 'web-1', path: '/data' }, now: new Date() };
const AT = '2026-11-21T03:00:00.000Z';
const ENTRY: Entry = {
  ...{ effect: 'email', event: 'sent', ref: 'a', at: AT, attempt: AT, report: 'weekly', project: 'prj_1' },
  ...{ period: '2026-W46', recipient: 'docs@example.com', via: 'smtp', messageId: '<1@a>', attempts: 1 },
};

const idOf = (warehouse: Warehouse) => warehouse.exclusive((connection) => workspaceIdOf(connection));
const linesOf = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => z.looseObject({ effect: z.string() }).parse(JSON.parse(line)));

describe('the id of a workspace', () => {
  it('is random, does not change, and comes before the first entry of the journal', async () => {
    const [warehouse, other] = [await liveWarehouse(), await liveWarehouse()];
    expect(await idOf(warehouse)).toBe(await idOf(warehouse));
    expect(await idOf(warehouse)).not.toBe(await idOf(other));
    const journal = await journalOf(warehouse);
    await agreeOnWorkspace(journal, warehouse, PLACE);
    await journal.append([ENTRY]);
    await journal.append([{ ...ENTRY, ref: 'b' }]);
    const lines = await linesOf(journal.path);
    expect(lines.map(({ effect }) => effect)).toEqual(['workspace', 'place', 'email', 'email']);
    expect((await journalOf(warehouse)).workspace).toBe(await idOf(warehouse));
  });

  it('is added once to a journal of an earlier version', async () => {
    const warehouse = await liveWarehouse();
    const before = await journalOf(warehouse);
    await appendFile(before.path, `${JSON.stringify(ENTRY)}\n`);
    for (let times = 0; times < 2; times++)
      await agreeOnWorkspace(await journalOf(warehouse), warehouse, PLACE);
    expect(await linesOf(before.path)).toEqual([
      ENTRY,
      expect.objectContaining({ effect: 'workspace', id: await idOf(warehouse), n: 2 }),
      expect.objectContaining({ effect: 'place', ...PLACE.here, n: 3 }),
    ]);
  });

  it('of a journal is adopted by a new database', async () => {
    const warehouse = await liveWarehouse();
    const journal = await journalOf(warehouse);
    await appendFile(journal.path, '{"effect":"workspace","id":"of-the-journal"}\n');
    await agreeOnWorkspace(await journalOf(warehouse), warehouse, PLACE);
    expect(await idOf(warehouse)).toBe('of-the-journal');
  });

  it('refuses the journal of another workspace, and says what to do', async () => {
    const warehouse = await liveWarehouse();
    const id = await idOf(warehouse);
    const journal = await journalOf(warehouse);
    await appendFile(journal.path, '{"effect":"workspace","id":"of-another"}\n');
    const agreeing = async () => agreeOnWorkspace(await journalOf(warehouse), warehouse, PLACE);
    await expect(agreeing).rejects.toThrow(StorageError);
    await expect(agreeing).rejects.toThrow(
      /belong to different workspaces. Nothing was sent.*docs\/backup\.md/,
    );
    expect(await linesOf(journal.path)).toHaveLength(1);
    expect(await idOf(warehouse)).toBe(id);
    // Two journals in one file are just as wrong.
    await appendFile(journal.path, `{"effect":"workspace","id":"${id}"}\n`);
    await expect(agreeing).rejects.toThrow('belong to different workspaces');
  });

  it('is in one place: where the journal says, else the database, else where it is first used', async () => {
    const warehouse = await liveWarehouse();
    const elsewhere = { here: { machine: 'm', host: 'web-2', path: '/copy' }, now: new Date() };
    expect(await agreeOnWorkspace(await journalOf(warehouse), warehouse, PLACE)).toEqual(PLACE.here);
    // The journal was not written yet, so only the database knows.
    const journal = await journalOf(warehouse);
    expect(await agreeOnWorkspace(journal, warehouse, elsewhere)).toEqual(PLACE.here);
    await journal.settleAt(elsewhere.here, elsewhere.now);
    await journal.append([ENTRY]);
    expect(await agreeOnWorkspace(await journalOf(warehouse), warehouse, PLACE)).toEqual(elsewhere.here);
    expect(await readPlace(warehouse)).toEqual(elsewhere.here);
    expect(placeDigest(elsewhere.here)).not.toBe(placeDigest(PLACE.here));
    // The id of a machine is confidential.
    expect((await placeOf('.')).machine).not.toMatch(/^[0-9a-f]{32}$/);
  });
});
