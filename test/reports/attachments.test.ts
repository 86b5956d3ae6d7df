import { describe, expect, it } from 'vitest';
import { attachmentsOf } from '../../src/reports/answers.js';
import { expectSendable, findReport } from '../../src/reports/definition.js';

const report = await findReport('weekly', undefined);
const attached = (rows: Parameters<typeof attachmentsOf>[1][number]['answers'][string]) =>
  attachmentsOf(['most_read'], [{ project: 'prj_1', answers: { most_read: rows } }]);

describe('the rows of a query as a CSV attachment', () => {
  it('keep every value, and none of them is a formula', () => {
    const [file] = attached([
      { path: '=cmd()', human: -5, note: 'a "quoted", text', nothing: null, days: ['2026-11-09'] },
      { path: '/docs', human: 1.5, note: '+1', nothing: null, days: [] },
    ]);
    expect(file).toEqual({
      filename: 'most_read.csv',
      csv: [
        'path,human,note,nothing,days',
        `'=cmd(),-5,"a ""quoted"", text",,"[""2026-11-09""]"`,
        `/docs,1.5,'+1,,[]`,
        '',
      ].join('\n'),
    });
  });

  it('of a query without rows is an empty file', () => {
    expect(attached([])).toEqual([{ filename: 'most_read.csv', csv: '\n' }]);
  });

  it('has as many rows as fit into an email, and a name that says so', () => {
    const rows = Array.from({ length: 60_000 }, (_, row) => ({ path: `/${'p'.repeat(95)}${row}`, human: 1 }));
    const [file] = attached(rows);
    const count = (file?.csv.trimEnd().split('\n').length ?? 0) - 1;
    expect(Buffer.byteLength(file?.csv ?? '')).toBeLessThanOrEqual(5_000_000);
    expect(count).toBeGreaterThan(40_000);
    expect(file?.filename).toBe(`most_read-first-${count}-of-60000-rows.csv`);
  });

  it('of several projects are in separate files', () => {
    const answers = { most_read: [{ path: '/' }] };
    const projects = ['prj_1', '../x'].map((project) => ({ project, answers }));
    const files = attachmentsOf(['most_read'], projects);
    expect(files.map(({ filename }) => filename)).toEqual(['prj_1-most_read.csv', '.._x-most_read.csv']);
  });

  it.each([
    [
      'attach names pagess, which is not a query of the report. Its queries are weeks, ',
      { attach: ['pagess'] },
    ],
    ['where: the built-in report weekly always covers the whole site. For /sdks/**, ', { where: '/sdks/**' }],
  ])('and parts that a report does not support are refused: %s', (words, audience) => {
    expect(() => {
      expectSendable(report, { attach: [], ...audience });
    }).toThrow(`reports.weekly.${words}`);
  });
});
