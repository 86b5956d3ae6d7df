import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { StorageError } from '../../src/errors.js';
import type { JournalEntry } from '../../src/effects/entries.js';
import { seal } from '../../src/effects/file.js';
import {
  agreeOnPlace,
  isSamePlace,
  placeOf,
  readPlace,
  readWorkspaceId,
  sendFrom,
} from '../../src/effects/place.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { execute, journalOf, liveWarehouse } from '../open-warehouse.js';

const HERE = { machine: 'm', host: 'web-1', path: '/data' };
const NOW = new Date('2026-11-21T03:00:00Z');
const AT = '2026-11-21T03:00:00.000Z';
const ENTRY: JournalEntry = {
  ...{ effect: 'email', event: 'sent', ref: 'a', at: AT, attempt: AT, report: 'weekly', project: 'prj_1' },
  ...{ period: '2026-W46', recipient: 'docs@example.com', via: 'smtp', messageId: '<1@a>', attempts: 1 },
};

const agree = async (warehouse: Warehouse, here = HERE) =>
  agreeOnPlace(await journalOf(warehouse), warehouse, here, NOW);
const linesOf = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => z.looseObject({ effect: z.string() }).parse(JSON.parse(line)));

describe('the id of a workspace', () => {
  it('is random, does not change, and comes before the first entry of the journal', async () => {
    const [warehouse, other] = [await liveWarehouse(), await liveWarehouse()];
    const journal = await journalOf(warehouse);
    await agreeOnPlace(journal, warehouse, HERE, NOW);
    const id = (await readWorkspaceId(warehouse)) ?? expect.fail();
    await agree(warehouse);
    await agree(other);
    expect(await readWorkspaceId(warehouse)).toBe(id);
    expect(await readWorkspaceId(other)).not.toBe(id);
    await journal.append([ENTRY]);
    await journal.append([{ ...ENTRY, ref: 'b' }]);
    const lines = await linesOf(journal.path);
    expect(lines.map(({ effect }) => effect)).toEqual(['workspace', 'place', 'email', 'email']);
    expect((await journalOf(warehouse)).workspace).toBe(id);
  });

  it('of a journal is adopted by a new database', async () => {
    const warehouse = await liveWarehouse();
    const journal = await journalOf(warehouse);
    await appendFile(journal.path, seal({ effect: 'workspace', id: 'of-the-journal' }, 1));
    await agree(warehouse);
    expect(await readWorkspaceId(warehouse)).toBe('of-the-journal');
  });

  it('refuses the journal of another workspace, and says what to do', async () => {
    const warehouse = await liveWarehouse();
    await agree(warehouse);
    const id = await readWorkspaceId(warehouse);
    const journal = await journalOf(warehouse);
    await writeFile(journal.path, seal({ effect: 'workspace', id: 'of-another' }, 1));
    const agreeing = () => agree(warehouse);
    await expect(agreeing).rejects.toThrow(StorageError);
    await expect(agreeing).rejects.toThrow(
      /belong to different workspaces. Nothing was sent.*docs\/backup\.md/,
    );
    expect(await linesOf(journal.path)).toHaveLength(1);
    expect(await readWorkspaceId(warehouse)).toBe(id);
    // Two journals in one file are just as wrong.
    await appendFile(journal.path, seal({ effect: 'workspace', id: id ?? expect.fail() }, 2));
    await expect(agreeing).rejects.toThrow('belong to different workspaces');
  });

  it('is in one place: where the journal says, else the database, else where it is first used', async () => {
    const warehouse = await liveWarehouse();
    const elsewhere = { machine: 'm', host: 'web-2', path: '/copy' };
    expect(await agree(warehouse)).toEqual(HERE);
    expect(await agree(warehouse, elsewhere)).toEqual(HERE);
    // A lost journal learns it from the database, and a lost database from the journal.
    const { path } = await journalOf(warehouse);
    await rm(path);
    expect(await agree(warehouse, elsewhere)).toEqual(HERE);
    await sendFrom(elsewhere, await journalOf(warehouse), warehouse, NOW);
    await execute(warehouse, 'UPDATE workspace SET machine = NULL, host = NULL, path = NULL');
    expect(await agree(warehouse)).toEqual(elsewhere);
    expect(await readPlace(warehouse)).toEqual(elsewhere);
    // The journal was written to, and then the process was killed.
    await execute(warehouse, "UPDATE workspace SET path = '/data'");
    expect(await agree(warehouse)).toEqual(elsewhere);
    expect(await readPlace(warehouse)).toEqual(elsewhere);
    // The same path on another machine is another place.
    for (const other of [{ machine: 'n' }, { path: '/copy' }])
      expect(isSamePlace(HERE, { ...HERE, ...other })).toBe(false);
    expect(isSamePlace(HERE, { ...HERE, host: 'renamed' })).toBe(true);
    // The id of a machine is confidential.
    expect((await placeOf('.')).machine).not.toMatch(/^[0-9a-f]{32}$/);
  });
});
