import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { listReports } from '../../src/reports/catalog.js';
import { renderReport, type RenderedReport } from '../../src/reports/render.js';
import { siteHistory, type TestHistory } from './history.js';

let history: TestHistory;
let workspaceDir: string;

beforeAll(async () => {
  history = await siteHistory({ pages: 20 });
});
afterAll(() => {
  history.close();
});
beforeEach(async () => {
  workspaceDir = await mkdtemp(join(tmpdir(), 'readership-reports-'));
});
afterEach(() => rm(workspaceDir, { recursive: true }));

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(workspaceDir, file)), { recursive: true });
  await writeFile(join(workspaceDir, file), text);
}

const render = (name: string): Promise<RenderedReport> =>
  renderReport({
    reader: history.reader,
    name,
    project: { id: 'prj_1', name: 'Acme & Sons' },
    now: new Date('2026-11-18T09:00:00Z'),
    workspaceDir,
  });

/** A custom workspace report: SQL, a chart and a template, but no TypeScript. */
async function writeBusiest(): Promise<void> {
  await write(
    'reports/busiest/report.yaml',
    `
title: Busiest day
subject: '{{project.name}}: busiest on {{longDay rows.busiest.day}}'
audience: Everyone
period: week
queries: { busiest: one, days: many }
pictures:
  days: { query: days, title: Views a day, widths: [400] }
`,
  );
  await write(
    'reports/busiest/busiest.sql',
    `-- Grain: one row.
SELECT day, total FROM site_days WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
ORDER BY total DESC LIMIT 1`,
  );
  await write(
    'reports/busiest/days.sql',
    'SELECT day, total FROM site_days WHERE day BETWEEN $from::DATE AND $to::DATE',
  );
  await write(
    'reports/busiest/days.vl.json',
    '{"data":{"name":"days"},"mark":"bar","encoding":{"x":{"field":"day"},"y":{"field":"total","type":"quantitative"}}}',
  );
  await write(
    'templates/busiest.html.hbs',
    '<h1>{{thousands rows.busiest.total}}</h1>{{> partials/picture drawings=pictures.days}}',
  );
}

test('lists the built-in reports and the workspace reports', async () => {
  expect((await listReports()).map(({ name }) => name)).toEqual(['improve', 'weekly']);
  await writeBusiest();
  expect((await listReports({ workspaceDir })).map(({ name, title }) => [name, title])).toEqual([
    ['busiest', 'Busiest day'],
    ['improve', 'Improve'],
    ['weekly', 'Weekly'],
  ]);
});

test('a workspace adds a report without TypeScript', async () => {
  await writeBusiest();
  const { subject, html } = await render('busiest');
  expect(subject).toMatch(/^Acme & Sons: busiest on \d+ Nov 2026$/);
  expect(html).toMatch(/<h1>[\d,]+<\/h1>[^]*<svg role="img"[^>]*><title>Views a day<\/title>/);
});

test('a workspace replaces a built-in report, or just its template', async () => {
  await write('templates/weekly.html.hbs', '<p>{{thousands human.views}} by hand</p>');
  expect((await render('weekly')).html).toMatch(/^<p>[\d,]+ by hand<\/p>$/);

  await cp('reports/weekly', join(workspaceDir, 'reports/weekly'), { recursive: true });
  await write('reports/weekly/most_read.sql', 'SELECT 1 AS wrong');
  await expect(render('weekly')).rejects.toThrow(
    /reports\/weekly: the queries do not give .*most_read: 0: path/,
  );
});

test('all problems of a definition are reported together, with their files', async () => {
  await write(
    'reports/broken/report.yaml',
    `
title: ''
subject: x
audience: y
period: fortnight
colour: red
queries: { numbers: some }
`,
  );
  const told = /report\.yaml: title: .*report\.yaml: period: .*report\.yaml: queries\.numbers: .*"colour"/s;
  await expect(render('broken')).rejects.toThrow(told);
  await expect(render('weekly')).resolves.toBeDefined();
});

test('missing files, invalid charts and broken YAML are reported by name', async () => {
  await writeBusiest();
  await rm(join(workspaceDir, 'reports/busiest/days.sql'));
  await write('reports/busiest/days.vl.json', '{');
  await expect(render('busiest')).rejects.toThrow(/2 faults[^]*days\.sql: missing[^]*days\.vl\.json: /);
  await write('reports/busiest/report.yaml', 'title: [');
  await expect(render('busiest')).rejects.toThrow(/report\.yaml: .*line 1/);
  await expect(render('monthly')).rejects.toThrow(
    'There is no report “monthly”. Reports: busiest, improve, weekly',
  );
});

test('a chart of a query that does not exist is rejected', async () => {
  await writeBusiest();
  await write(
    'reports/busiest/report.yaml',
    `{ title: t, subject: s, audience: a, period: week, queries: { busiest: one },
       pictures: { days: { query: days, title: t, widths: [400] } } }`,
  );
  await expect(render('busiest')).rejects.toThrow('pictures.days.query: there is no query days');
});

test('SQL errors and wrong row counts name the file', async () => {
  await writeBusiest();
  await write('reports/busiest/busiest.sql', 'SELECT nothing FROM nowhere');
  await expect(render('busiest')).rejects.toThrow(/reports\/busiest\/busiest\.sql: .*nowhere/);
  await write('reports/busiest/busiest.sql', 'SELECT 1 AS day WHERE false');
  await expect(render('busiest')).rejects.toThrow(/busiest\.sql: gave 0 rows/);
});

test.each([
  '{{rows.busiest.totl}}',
  '{{#if rows.busiest.totl}}x{{/if}}',
  '{{#each totl}}x{{/each}}',
  '{{> partials/picture drawings=totl}}',
])('a field that is missing stops the report: %s', async (template) => {
  await writeBusiest();
  await write('templates/busiest.html.hbs', template);
  await expect(render('busiest')).rejects.toThrow(/report busiest cannot be written: .*totl/);
});

test('a missing template or argument is reported by name', async () => {
  await writeBusiest();
  await write('templates/busiest.html.hbs', '{{thousands rows.busiest.day}}');
  await expect(render('busiest')).rejects.toThrow(/report busiest cannot be written: .*expected number/);
  await rm(join(workspaceDir, 'templates/busiest.html.hbs'));
  await expect(render('busiest')).rejects.toThrow('expected templates/busiest.html.hbs');
});

test('a chart loads no external resources', async () => {
  await writeBusiest();
  await write('reports/busiest/days.vl.json', '{"data":{"url":"file:///etc/hostname"},"mark":"bar"}');
  await expect(render('busiest')).rejects.toThrow(/days\.vl\.json: .*may not load/);
});
