import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import type { State } from '../../src/state/state.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { tempDir } from '../temp-dir.js';
import { addJob, change, newState, reopened, valueOf } from './new-state.js';
import { otherProcess } from './other-process.js';

describe('the counter of changes', () => {
  let state: State;
  beforeEach(async () => {
    ({ state } = await newState());
    await addJob(state, '/one');
    await addJob(state, '/two');
    await change(
      state,
      `INSERT INTO messages (reference, job, state, origin, prompt, planned_at) VALUES ('m', 1, 'planned', 'typed', 'Go on', '2026')`,
    );
    await change(state, `INSERT INTO pull_requests VALUES (1, '2026', '2027', NULL, NULL, NULL)`);
    await change(
      state,
      `INSERT INTO emails (report, project, period, recipient, state, via, message_id, attempt, attempts, tried_at) VALUES ('weekly', 'prj_1', '2026-W46', 'Docs@Example.com', 'sending', 'smtp', '<a@b>', 1, 1, '2026')`,
    );
    await change(state, `INSERT INTO skips VALUES ('prj_1', '/one', '2026', NULL)`);
  });

  it('counts each row that is added', () => {
    expect(readWorkspaceRow(state).changes).toBe(6);
  });

  it.each([
    [2, `UPDATE jobs SET state = 'active'`],
    [1, `UPDATE jobs SET state = 'active' WHERE id = 1`],
    [1, `UPDATE jobs SET is_approved = 1 WHERE id = 1`],
    [1, `UPDATE jobs SET submitted_at = '2026' WHERE id = 1`],
    [1, `UPDATE jobs SET remote_id = 'job_1' WHERE id = 1`],
    [1, `UPDATE jobs SET remote_status = 'running', polls = 1 WHERE id = 1`],
    [1, `UPDATE jobs SET pr_link = 'https://example.com/1' WHERE id = 1`],
    [1, `UPDATE jobs SET ended_at = '2026' WHERE id = 1`],
    [1, `UPDATE jobs SET note = 'no' WHERE id = 1`],
    [1, `UPDATE jobs SET merged_on = '2026-11-18' WHERE id = 1`],
    [1, `UPDATE jobs SET repository = 'acme/docs' WHERE id = 1`],
    [1, `UPDATE messages SET state = 'sent'`],
    [1, `UPDATE pull_requests SET closed_on = '2026-11-18'`],
    [1, `UPDATE pull_requests SET problem = 'no access'`],
    [1, `DELETE FROM pull_requests`],
    [1, `UPDATE emails SET state = 'sent'`],
    [1, `DELETE FROM emails`],
    [1, `UPDATE skips SET skipped_until = '2027'`],
    [
      1,
      `INSERT INTO skips VALUES ('prj_1', '/one', '2027', NULL) ON CONFLICT DO UPDATE SET skipped_at = '2027'`,
    ],
    [1, `DELETE FROM skips`],
    // Polls without news.
    [0, `UPDATE jobs SET polls = polls + 1, next_poll_at = '2027'`],
    [0, `UPDATE jobs SET state = state, remote_status = remote_status, note = note`],
    [0, `UPDATE pull_requests SET checked_at = '2027', next_check_at = '2028', problem = NULL`],
    [0, `DELETE FROM skips WHERE path = '/three'`],
    // What is no decision.
    [0, `INSERT INTO requests VALUES ('k', 'm', 1, 0)`],
    [0, `INSERT INTO runs VALUES ('r', 'export', '2026', NULL, 'running', NULL, NULL)`],
    [0, `UPDATE worker SET token = token + 1`],
  ])('adds %i for %s', async (count, sql) => {
    await change(state, sql);
    expect(readWorkspaceRow(state).changes).toBe(6 + count);
  });

  it('counts nothing that is rolled back', async () => {
    const failing = state.transaction(() => {
      state.run('DELETE FROM skips');
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(readWorkspaceRow(state).changes).toBe(6);
  });

  it('addresses are compared without case', async () => {
    const again = `INSERT INTO emails (report, project, period, recipient, state, via, message_id, attempt, attempts, tried_at) VALUES ('weekly', 'prj_1', '2026-W46', 'docs@example.COM', 'sending', 'smtp', '<c@d>', 2, 1, '2026')`;
    await expect(change(state, again)).rejects.toThrow(/UNIQUE/);
    expect(valueOf(state, `SELECT count(*) FROM emails WHERE recipient = 'DOCS@example.com'`)).toBe(1);
  });
});

describe('a copy', () => {
  it('is whole while another process writes, and private', async () => {
    const { dataDir, state } = await newState();
    await state.transaction(() => {
      state.run('CREATE TABLE claims (id INTEGER PRIMARY KEY, by INTEGER) STRICT');
      for (let row = 0; row < 100; row++) state.run('INSERT INTO claims (by) VALUES (NULL)');
    });
    const writing = (await otherProcess(dataDir)).does('claim');
    const writer = { isDone: false };
    void writing.then(() => (writer.isDone = true));
    const claimed: number[] = [];
    while (!writer.isDone) {
      const directory = await tempDir();
      const path = join(directory, 'state.db');
      state.copyTo(path);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      const copy = await reopened(directory);
      copy.expectSound();
      expect(readWorkspaceRow(copy)).toEqual(readWorkspaceRow(state));
      claimed.push(Number(valueOf(copy, 'SELECT count(by) FROM claims')));
    }
    expect(await writing).toHaveLength(100);
    // Each has what was there at one moment.
    expect(claimed).toEqual(claimed.toSorted((one, other) => one - other));
  });

  it('replaces nothing', async () => {
    const { dataDir, state } = await newState();
    expect(() => state.copyTo(join(dataDir, 'state.db'))).toThrow(/already exists/);
    expect(() => state.copyTo(join(dataDir, 'missing', 'copy.db'))).toThrow(StorageError);
    state.expectSound();
    expect(existsSync(join(dataDir, 'missing'))).toBe(false);
  });
});

describe('the files with locks', () => {
  const source = fileURLToPath(new URL('../../src', import.meta.url));
  /** What may be done with them by name: nothing opens them. */
  const HARMLESS = ['chmodSync', 'mkdirSync', 'rmSync', 'stat', 'renameSync'];

  it('are named in few modules, which open no file through fs', async () => {
    const names = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.ts'));
    const found: string[] = [];
    for (const name of names) {
      const text = await readFile(join(source, name), 'utf8');
      const code = text.replaceAll(/\/\*[^]*?\*\/|^ *\/\/.*$/gm, '');
      if (!/'state\.db|'worker\.lock'|stateFileIn|\bopenDatabase\b|@photostructure/.test(code)) continue;
      found.push(relative(source, join(source, name)));
      for (const [, imported = ''] of code.matchAll(/import \{([^}]*)\} from 'node:fs(?:\/promises)?'/g))
        for (const one of imported.split(',').map((part) => part.trim()))
          expect(['', ...HARMLESS], `${name} imports ${one}`).toContain(one);
    }
    const inState = ['database', 'lock', 'open', 'restore', 'state'].map((name) =>
      join('state', `${name}.ts`),
    );
    // Which removes what a killed process left of a next file.
    expect(found.toSorted()).toEqual([join('app', 'open.ts'), ...inState]);
  });

  it('keep their locks whatever the worker does with the state meanwhile', async () => {
    const { dataDir, state } = await newState();
    await addJob(state);
    const holder = await otherProcess(dataDir, { witness: join(dataDir, '..', '.readership.yaml.sent') });
    await holder.does('acquire', 0);
    for (const command of ['expectLocks', 'begin', 'create', 'attempts', 'collectGarbage', 'expectCurrent'])
      await holder.does(command);
    const other = await otherProcess(dataDir);
    expect(await other.told('acquire', 0)).toMatchObject({ error: 'LockedError' });
  });
});
