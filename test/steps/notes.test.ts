import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { readNotes } from '../../src/config/notes.js';
import { day } from '../../src/day.js';
import { messageOf } from '../../src/errors.js';
import { writeNote } from '../../src/steps/notes.js';
import { reportStep } from '../../src/steps/report.js';
import { actionOf } from '../../src/web/actions.js';
import type { SiteRequest } from '../../src/web/request.js';
import { newStore } from '../open-history.js';
import { stateBeside } from '../open-state.js';
import { tempDir } from '../temp-dir.js';
import { partsOf } from './parts-of.js';

const NOTES = 'SELECT day, text, path, is_break FROM notes WHERE project = $project ORDER BY day, text';
const noteRow = z.object({ day: z.string(), text: z.string(), path: z.string(), is_break: z.boolean() });

const PROJECTS = { projects: [{ id: 'prj_1' }, { id: 'prj_2' }] };

/** A workspace with notes, how to load them, and the loaded notes of a project. */
async function workspaceWith(notes: string | undefined) {
  const workspaceDir = await tempDir();
  const file = join(workspaceDir, 'notes.yaml');
  if (notes !== undefined) await writeFile(file, notes);
  const history = await newStore();
  const parts = partsOf(history, {
    state: (await stateBeside(history)).state,
    settings: PROJECTS,
    workspace: { workspaceDir },
  });
  /** Loads the notes as a step does; returns what is wrong with them. */
  const load = async (): Promise<string> => {
    const { error } = await reportStep(parts);
    return error === undefined ? '' : messageOf(error).replaceAll(workspaceDir, '');
  };
  const loaded = (project = 'prj_1') => parts.store.query(NOTES, noteRow, { project });
  return { parts, file, load, loaded };
}

const WRITTEN = '- { date: 2026-06-08, text: Markdown counts as AI, break: true }\n';
const SITE = { day: '2026-06-08', text: 'Markdown counts as AI', path: '*', is_break: true };

it('notes are loaded by each step that uses them, into each project that they concern', async () => {
  const other = '- date: 2026-05-01\n  text: "Sale: 20 %"\n  project: prj_2\n  path: /pricing*\n';
  const { file, load, loaded } = await workspaceWith(WRITTEN + other);
  expect(await load()).toBe('');
  expect(await loaded()).toEqual([SITE]);
  const sale = { day: '2026-05-01', text: 'Sale: 20 %', path: '/pricing*', is_break: false };
  expect(await loaded('prj_2')).toEqual([sale, SITE]);
  await writeFile(file, '- { date: 2026-06-08, text: Markdown counts as AI, path: "/*", break: true }\n');
  await load();
  expect(await loaded()).toEqual([SITE]);
  await writeFile(file, '- { date: 2026-06-08, text: Rewritten, path: /guide/index.html }\n');
  await load();
  expect(await loaded()).toMatchObject([{ path: '/guide' }]);
  await writeFile(file, '# none any more\n');
  expect(await load()).toBe('');
  expect(await loaded('prj_2')).toEqual([]);
});

it('notes with a problem are reported by line; reports use the earlier ones', async () => {
  const { file, load, loaded } = await workspaceWith('- { date: 2026-06-08, text: x }');
  await load();
  await writeFile(file, '- date: 2026-06-08\n  text: x\n  brake: true\n- text: y\n');
  expect(await load()).toContain(
    'notes.yaml has 2 problems:\n  notes.yaml:3  [0].brake: unknown setting; there is date, text, project, path, break\n  notes.yaml:4  [1].date: is missing',
  );
  expect(await loaded()).toEqual([{ ...SITE, text: 'x', is_break: false }]);
  await writeFile(file, '');
  expect(await load()).toBe('');
});

it.each([
  ['- { date: 2026-02-30, text: x }', '1  [0].date: not a day: write YYYY-MM-DD, such as 2026-01-31'],
  ['# why\n- text: x', '2  [0].date: is missing'],
  ['- date: 2026-06-08\n  text: ""', '2  [0].text: '],
  ['- date: 2026-06-08\n  text: x\n  break: maybe', '3  [0].break: '],
  [
    '- { date: 2026-06-08, text: x, path: guides }',
    '1  [0].path: matches no page: write a path that begins with /',
  ],
  ['- { date: 2026-06-08, text: x, project: prj_9 }', '1  [0].project: not the id of a project'],
  ['date: 2026-06-08\ntext: x', '1  write a list of notes, such as'],
  ['- { date: 2026-06-08', '1  '],
])('a file of notes (%j) with a problem is refused with its line', async (text, problem) => {
  const file = join(await tempDir(), 'notes.yaml');
  await writeFile(file, text);
  await expect(readNotes(file, ['prj_1'])).rejects.toThrow(`has a problem:\n  notes.yaml:${problem}`);
});

const ADDED = { date: day('2026-06-09'), text: 'It\'s "live": #1', path: '/guides/*', break: true };

it.each([
  undefined,
  '',
  '# kept\n- { date: 2026-06-08, text: x } # and this',
  '- date: 2026-06-08\n  text: x\n',
  '\uFEFF- date: 2026-06-08\n  text: x\n',
])('a note is added to the end of a file (%j), and the rest is left as it is', async (before) => {
  const { file, parts } = await workspaceWith(before);
  await writeNote(parts.workspace, ADDED);
  expect((await readFile(file, 'utf8')).startsWith(before ?? '')).toBe(true);
  expect((await readNotes(file, [])).at(-1)).toEqual(ADDED);
});

it.each(['[{ date: 2026-06-08, text: x }]', '- { date: 2026-06-08', '  - date: 2026-06-08\n    text: x\n'])(
  'a note is not added to a file (%j) that it would break; the message contains it',
  async (before) => {
    const { file, parts } = await workspaceWith(before);
    await expect(writeNote(parts.workspace, ADDED)).rejects.toThrow(/^/);
    expect(await readFile(file, 'utf8')).toBe(before);
  },
);

it('a note is added to the file that a symbolic link leads to', async () => {
  const { file, parts } = await workspaceWith(undefined);
  await writeFile(`${file}.real`, '');
  await symlink(`${file}.real`, file);
  await writeNote(parts.workspace, ADDED);
  expect(await readFile(`${file}.real`, 'utf8')).toContain('2026-06-09');
  // In the web app it is about the selected project.
  const [, other = expect.fail()] = parts.workspace.projects;
  const fields = { action: 'note', date: '2026-06-10', text: 'x', path: '' };
  const reader = { state: parts.state };
  const request = { reader, workspace: parts.workspace, project: other } as unknown as SiteRequest;
  await actionOf(new URLSearchParams(fields)).work(request);
  expect((await readNotes(file, undefined)).at(-1)).toMatchObject({ project: 'prj_2' });
});
