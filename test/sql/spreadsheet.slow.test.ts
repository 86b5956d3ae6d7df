import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { csvCell } from '../../src/format/text.js';
import { tempDir } from '../temp-dir.js';

const run = promisify(execFile);
const SEPARATORS = { comma: 44, semicolon: 59, tab: 9 };

const isInstalled = await run('soffice', ['--version']).then(
  () => true,
  () => false,
);

/** The formulas in a CSV file, as LibreOffice reads it. */
async function formulasIn(directory: string, file: string, separator: number): Promise<string[]> {
  const profile = `-env:UserInstallation=file://${join(directory, 'profile')}`;
  const filter = `--infilter=CSV:${separator},34,76,1`;
  const out = ['--convert-to', 'fods', '--outdir', directory, join(directory, file)];
  await run('soffice', ['--headless', profile, filter, ...out]);
  const sheet = await readFile(join(directory, file.replace('.csv', '.fods')), 'utf8');
  return [...sheet.matchAll(/table:formula="([^"]*)"/g)].map(([, formula = '']) => formula);
}

const HOSTILE = ['=1+1', '＝1+1', '+1+A1', '-1+A1', '@SUM(1)', '"=1+1"', ' =1+1', '\t=1+1'].flatMap(
  (formula) => ['', 'a;', 'a\t', 'a\n', 'a\r\n', ';', ';;'].map((before) => before + formula),
);

it.skipIf(!isInstalled)(
  'LibreOffice finds no formula in a CSV file, whatever it splits at (skipped without LibreOffice)',
  async () => {
    const directory = await tempDir();
    const rows = (cell: (text: string) => string) =>
      HOSTILE.map((text) => `/page,${cell(text)},${cell(text)},7\n`).join('');
    await writeFile(
      join(directory, 'guarded.csv'),
      rows((text) => csvCell(text, { isNumeric: false })),
    );
    await writeFile(
      join(directory, 'bare.csv'),
      rows((text) => `"${text.replaceAll('"', '""')}"`),
    );
    for (const [name, separator] of Object.entries(SEPARATORS)) {
      expect(await formulasIn(directory, 'guarded.csv', separator), name).toEqual([]);
    }
    expect(await formulasIn(directory, 'bare.csv', SEPARATORS.semicolon)).not.toEqual([]);
  },
);
