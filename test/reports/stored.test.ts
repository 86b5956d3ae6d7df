import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { storedPages, writePage } from '../../src/reports/pages.js';
import { ISO_CALENDAR, periodNamed } from '../../src/reports/period.js';
import { tempDir } from '../temp-dir.js';

function rendered(name: string, periodName: string, subject: string) {
  const period = periodNamed(periodName, ISO_CALENDAR) ?? expect.fail(`no period ${periodName}`);
  const html = `<title>${subject.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</title>`;
  return { name, period, page: () => Promise.resolve(html) };
}

test('pages are listed by period, newest first, across projects; other files are not', async () => {
  const directory = await tempDir();
  await writePage(directory, 'prj/1', rendered('weekly', '2026-W46', 'Docs <b> & more'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W46', 'Second'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W53', 'Last week'));
  await writePage(directory, 'prj_2', rendered('sections', '2026-10', 'October'));
  await writeFile(join(directory, 'prj_2', 'notes.html'), 'not a report');
  await writeFile(join(directory, 'prj_2', 'notes-2026-13.html'), 'nor of a month');
  const pages = await storedPages(directory, ISO_CALENDAR);
  expect(pages.map(({ period, report, subject }) => [period.label, report, subject])).toEqual([
    ['Week 53', 'Weekly', 'Last week'],
    ['Week 46', 'Weekly', 'Docs <b> & more'],
    ['Week 46', 'Weekly', 'Second'],
    ['October 2026', 'Sections', 'October'],
  ]);
  // The folder name is the encoded id, so its URL is encoded twice.
  expect(pages[1]?.href).toBe('prj%252F1/weekly-2026-W46.html');
  // Without a directory there are none.
  expect(await storedPages(join(directory, 'none'), ISO_CALENDAR)).toEqual([]);
});
