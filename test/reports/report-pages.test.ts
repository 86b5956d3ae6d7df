import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listPages, writePage } from '../../src/reports/report-pages.js';
import { ISO_CALENDAR, periodNamed } from '../../src/reports/period.js';
import { tempDir } from '../temp-dir.js';

function rendered(name: string, periodName: string) {
  const period = periodNamed(periodName, ISO_CALENDAR) ?? expect.fail(`no period ${periodName}`);
  return { name, period, page: () => Promise.resolve('<title>a report</title>') };
}

it('pages are listed by period, newest first, across projects; other files are not', async () => {
  const directory = await tempDir();
  await writePage(directory, 'prj/1', rendered('weekly', '2026-W46'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W46'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W53'));
  await writePage(directory, 'prj_2', rendered('sections', '2026-10'));
  await writeFile(join(directory, 'prj_2', 'notes.html'), 'not a report');
  await writeFile(join(directory, 'prj_2', 'notes-2026-13.html'), 'nor of a month');
  // The folder name is the encoded id, so its URL is encoded twice.
  const pages = await listPages(directory, ISO_CALENDAR);
  expect(pages.map(({ period, name, href }) => [period.label, name, href])).toEqual([
    ['Week 53', 'weekly', 'prj_2/weekly-2026-W53.html'],
    ['Week 46', 'weekly', 'prj%252F1/weekly-2026-W46.html'],
    ['Week 46', 'weekly', 'prj_2/weekly-2026-W46.html'],
    ['October 2026', 'sections', 'prj_2/sections-2026-10.html'],
  ]);
  // Without a directory there are none.
  expect(await listPages(join(directory, 'none'), ISO_CALENDAR)).toEqual([]);
});
