import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { listReports } from '../../src/reports/definition.js';
import { TemplateError } from '../../src/reports/templates.js';
import type { PreparedReport } from '../../src/reports/render.js';
import { tempDir } from '../temp-dir.js';
import { siteHistory, type TestHistory } from './history.js';
import { prepare } from './prepare.js';

let history: TestHistory;
let workspaceDir: string;

beforeAll(async () => {
  history = await siteHistory({ pages: 20 });
});
beforeEach(async () => {
  workspaceDir = await tempDir();
});

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(workspaceDir, file)), { recursive: true });
  await writeFile(join(workspaceDir, file), text);
}

const prepared = (name: string): Promise<PreparedReport> =>
  prepare({ reader: history.reader, name, workspaceDir, projectName: 'Acme & Sons' });

async function render(name: string): Promise<{ subject: string; html: string }> {
  const report = await prepared(name);
  return { subject: report.subject, html: await report.page() };
}

/** A report of the workspace's own: SQL, a chart and a template, no TypeScript. */
const BUSIEST = {
  'report.yaml': `
title: Busiest day
subject: '{{project.name}}: busiest on {{longDay rows.busiest.day}}'
audience: Everyone
period: week
queries:
  busiest: one
  days: { show: lines, columns: [total], title: Views per day }
`,
  'busiest.sql': `-- Grain: one row.
SELECT day, total FROM site_days WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
ORDER BY total DESC LIMIT 1`,
  'days.sql': 'SELECT day, total FROM site_days WHERE day BETWEEN $from::DATE AND $to::DATE ORDER BY day',
};
const PAGE = '<h1>{{thousands rows.busiest.total}}</h1>{{> partials/chart charts.days}}';

const busiest = (file: string, text: string) => write(`reports/busiest/${file}`, text);

async function writeBusiest(): Promise<void> {
  for (const [file, text] of Object.entries(BUSIEST)) await busiest(file, text);
  await write('templates/busiest.html.hbs', PAGE);
}

test('a workspace adds a report without TypeScript', async () => {
  await writeBusiest();
  const { subject, html } = await render('busiest');
  expect(subject).toMatch(/^Acme & Sons: busiest on Nov \d+, 2026$/);
  expect(html).toMatch(/<h1>[\d,]+<\/h1>[^]*<svg role="img"[^>]*><title>Views per day<\/title>/);
});

test('a workspace replaces a built-in report, or just its template', async () => {
  await write('templates/weekly.html.hbs', '<p>{{thousands human.views}} by hand</p>');
  expect((await render('weekly')).html).toMatch(/^<p>[\d,]+ by hand<\/p>$/);

  await cp('reports/weekly', join(workspaceDir, 'reports/weekly'), { recursive: true });
  await write('reports/weekly/moved.sql', 'SELECT 1 AS wrong');
  await expect(render('weekly')).rejects.toThrow(
    /reports\/weekly: the queries do not return .*moved: 0: path/,
  );
});

test('all problems of a definition are listed together, with their lines', async () => {
  await write(
    'reports/broken/report.yaml',
    `
title: ''
subject: x
audience: y
period: fortnight
colour: red
queries: { numbers: some }
model: monthly
`,
  );
  const listed =
    /report\.yaml:2 {2}title: .*report\.yaml:5 {2}period: .*report\.yaml:6 {2}colour: .*report\.yaml:7 {2}queries\.numbers: .*report\.yaml:8 {2}model: there is no such model; there are weekly and improve/s;
  await expect(render('broken')).rejects.toThrow(listed);
  await expect(render('weekly')).resolves.toBeDefined();
});

test('a report computes with its days, and shows facts, dates, and a chart instead of a table', async () => {
  await writeBusiest();
  await rm(join(workspaceDir, 'templates/busiest.html.hbs'));
  await busiest('report.yaml', 'title: t\nqueries: { busiest: one, days: { show: lines }, list: many }');
  await busiest(
    'busiest.sql',
    `SELECT count(*) AS days_before, min(day) AS first, $from - INTERVAL 7 DAY AS week_before FROM site_days
     WHERE project = $project AND day >= $from - INTERVAL 7 DAY AND day < $from`,
  );
  await busiest('list.sql', "SELECT $to AS last_day, TIMESTAMP '2026-11-16 02:03:00' AS at");
  const report = await prepared('busiest');
  const html = await report.page();
  const tiles = [
    ...html.matchAll(/<td class="figure">([^<]*)<br><span class="(?:value|words)">([^<]*)</g),
  ].map(([, ...pair]) => pair);
  expect(tiles).toEqual([
    ['Days before', '7'],
    ['First', 'Nov 2, 2026'],
    ['Week before', 'Nov 2, 2026'],
  ]);
  expect(html).toMatch(/data-value="2026-11-15">Nov 15, 2026<.*>Nov 16, 2026 at 02:03 UTC</);
  expect(html).toMatch(/<h2 id="days">Days<[^]*<title>Days<\/title>/);
  expect(html.match(/<table class="card rows/g)).toHaveLength(1);
  // Plain text has no charts, so it has the rows.
  expect(report.text()).toMatch(/\nDAYS\nNov 9, 2026: Total [\d,]+\n/);
  const { html: mail, pictures } = await report.email();
  expect(mail).toMatch(
    />Days<\/h2>[^]*<img [^>]*alt="Days. Total: [\d,]+ on Nov 9, 2026, [^"]* on Nov 15, 2026."/,
  );
  expect(pictures).toHaveLength(2);
  // On a phone, each of the three facts has the width that it needs.
  expect(mail).not.toContain('width: 50%');
  expect(JSON.parse(report.json())).toMatchObject({
    project: { siteUrl: null },
    rows: { list: [{ last_day: '2026-11-15' }] },
  });
});

test('facts without a value, and with a path of any characters, are safe in plain text', async () => {
  await writeBusiest();
  await busiest('report.yaml', 'title: t\nqueries: { busiest: { show: facts }, days: many }');
  await busiest('busiest.sql', "SELECT '/a' || chr(10) || 'b' AS path, NULL AS human");
  const report = await prepared('busiest');
  expect(report.text()).toContain('\nPath: /a%0Ab\nHuman: –\n');
  expect(report.chat()).toContain('\nPath: /a%0Ab\nHuman: –\n');
});

test('missing files and broken YAML are reported by name', async () => {
  await writeBusiest();
  await rm(join(workspaceDir, 'reports/busiest/days.sql'));
  await rm(join(workspaceDir, 'reports/busiest/busiest.sql'));
  await expect(render('busiest')).rejects.toThrow(
    /2 problems[^]*busiest\.sql: missing[^]*days\.sql: missing/,
  );
  await busiest('report.yaml', 'title: [');
  await expect(render('busiest')).rejects.toThrow(/report\.yaml:1 {2}/);
  await expect(render('monthly')).rejects.toThrow(
    'There is no report “monthly”. Reports: busiest, improve, weekly',
  );
});

test.each([
  [
    'report.yaml',
    '{ title: t, queries: { days: { show: pie } } }',
    'queries.days: write one, many, or what to show: { show: lines }, with lines, bars, facts, table, [lines, table] or [bars, table]',
  ],
  [
    'report.yaml',
    '{ title: t, queries: { days: { show: [lines, bars] } } }',
    'queries.days.show: write [lines, table] or [bars, table]',
  ],
  [
    'report.yaml',
    '{ title: t, queries: { days: { show: lines, columns: [totl] } } }',
    'days.sql: queries.days.columns names totl, but the columns are day, total',
  ],
  [
    'report.yaml',
    '{ title: t, queries: { days: { show: lines, columns: [day] } } }',
    'days.sql: queries.days: “day” is not a column of numbers. Its columns are day, total.',
  ],
  ['days.sql', "SELECT 'x' AS name, 1 AS total", 'lines need a column with a different day in each row'],
  [
    'days.sql',
    "SELECT DATE '2026-11-09' AS day, 1 AS total FROM range(2)",
    'lines need a column with a different',
  ],
  [
    'busiest.sql',
    '-- Grain: one row.\nSELECT nothing\nFROM nowhere',
    /reports\/busiest\/busiest\.sql:3 {2}.*nowhere/,
  ],
  ['busiest.sql', "SELECT 1 AS day,\n  'x'::INTEGER AS total", /busiest\.sql:2 {2}.*INT32$/],
  ['busiest.sql', 'SELECT 1 AS day WHERE false', /busiest\.sql: returned 0 rows/],
  [
    'busiest.sql',
    'SELECT unnest([1, 2]) AS total',
    'returned 2 rows, but report.yaml expects one; if it can return several, write busiest: many',
  ],
])('a problem in %s is an error that names the file: %s', async (file, text, message) => {
  await writeBusiest();
  await busiest(file, text);
  await expect(render('busiest')).rejects.toThrow(message);
});

test.each([
  ['{{rows.busiest.totl}}', 'totl'],
  ['{{#if rows.busiest.totl}}x{{/if}}', 'totl'],
  ['{{#each totl}}x{{/each}}', 'totl'],
  ['{{> partials/chart totl}}', 'totl'],
  ['{{drawChart charts.days "poster"}}', 'page'],
  ['{{thousands rows.busiest.day}}', 'expected number'],
])('a template with a missing field or a wrong argument stops the report: %s', async (template, words) => {
  await writeBusiest();
  await write('templates/busiest.html.hbs', template);
  await expect(render('busiest')).rejects.toThrow(new RegExp(`report busiest cannot be written: .*${words}`));
});

test.each([
  [
    'SELECT 1 AS total, 2 AS more',
    '[total, more]',
    'bars need a column that names each of them, such as path or section',
  ],
  [
    "SELECT '/' AS path, 'x' AS total",
    '[total]',
    '“total” is not a column of numbers. Its columns are path, total.',
  ],
  ["SELECT '/' AS path, 9 AS total, 0.5 AS share", '[total, share]', 'need separate charts'],
])('bars of %s are refused with what they need', async (sql, columns, message) => {
  await writeBusiest();
  await busiest('report.yaml', `{ title: t, queries: { days: { show: bars, columns: ${columns} } } }`);
  await busiest('days.sql', sql);
  await expect(render('busiest')).rejects.toThrow(new RegExp(`days\\.sql: queries\\.days: .*${message}`));
});

test('lines mark the notes about their days, on the page and in the email', async () => {
  await writeBusiest();
  await rm(join(workspaceDir, 'templates/busiest.html.hbs'));
  await history.run(`
    INSERT INTO notes BY NAME
    SELECT 'prj_1' AS project, DATE '2026-11-11' AS day, 'New <navigation>' AS text, '/guides/*' AS path, true AS is_break
    UNION ALL BY NAME SELECT 'prj_1' AS project, DATE '2026-01-01' AS day, 'Before' AS text, '*' AS path, false AS is_break`);
  const report = await prepared('busiest');
  const note = 'Nov 11, 2026: New &lt;navigation&gt; (/guides/*). Nothing is compared across this day.';
  for (const html of [await report.page(), (await report.email()).html]) {
    expect(html).toMatch(new RegExp(`<b[^>]*>A</b> ${note.replace(/[()*]/g, '\\$&')}`));
    expect(html).not.toContain('Before');
  }
  await history.run('DELETE FROM notes');
});

const BOMB = `
a: &a [x,x,x,x,x,x,x,x,x,x]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
title: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]
`;

test('aliases that expand without end are an input error, in a report and in the palette', async () => {
  await write('reports/bomb/report.yaml', BOMB);
  const refused = /bomb\/report\.yaml:3 {2}YAML aliases repeat too many values; write the values out/;
  await expect(render('bomb')).rejects.toThrow(refused);
  await expect(render('bomb')).rejects.toThrow(ConfigurationError);
  await write('templates/palette.yaml', BOMB);
  await expect(render('weekly')).rejects.toThrow(/palette\.yaml:3 {2}YAML aliases/);
});

test('a broken report is listed as broken, beside those that work', async () => {
  await write('reports/bomb/report.yaml', BOMB);
  await write('reports/torn/report.yaml', 'title: [');
  const { reports, broken } = await listReports(workspaceDir);
  expect(reports.map(({ name }) => name)).toEqual(['improve', 'weekly']);
  expect(broken.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^The report bomb cannot be used: .*bomb\/report\.yaml:3 /),
    expect.stringMatching(/^The report torn cannot be used: .*torn\/report\.yaml:1 /),
  ]);
});

describe('a broken template', () => {
  test('stops only the report that it belongs to', async () => {
    await writeBusiest();
    await write('templates/busiest.html.hbs', '{{#if x}');
    await mkdir(join(workspaceDir, 'templates/folder.html.hbs'));
    const mine = join(workspaceDir, 'templates/busiest.html.hbs');
    await expect(render('busiest')).rejects.toThrow(
      new RegExp(`^The report busiest cannot be written: ${mine}: Parse error on line 1: .*\\nFix that file`),
    );
    for (const name of ['weekly', 'improve']) await expect(render(name)).resolves.toBeDefined();
  });

  test('of one form leaves the other forms', async () => {
    await write('templates/weekly.text.hbs', '{{nothing}}');
    expect((await render('weekly')).html).toContain('</html>');
    const report = await prepared('weekly');
    expect(() => report.text()).toThrow(
      /weekly\.text\.hbs: line 1: there is no “nothing”; there are project, period, /,
    );
    await expect(report.email()).rejects.toThrow(/templates\/weekly\.text\.hbs/);
    await write('templates/weekly.text.hbs', 'One line.\n{{counted parts.length "project"}}');
    const old = await prepared('weekly');
    expect(() => old.text()).toThrow(
      /weekly\.text\.hbs: line 2, column 10: “length” belongs to a field that does not exist\nFix that file \(/,
    );
  });

  test.each([
    ['a partial', 'partials/lists.html.hbs', '{{#if x}'],
    ['a partial with a missing field', 'partials/lists.html.hbs', '{{nothing}}'],
    ['a partial within a partial', 'partials/path.html.hbs', '{{> partials/missing}}'],
    ['a layout', 'layouts/page.html.hbs', '{{> @partial-block}}{{nothing}}'],
    ['a block of a layout', 'weekly.html.hbs', '{{#> layouts/page}}{{nothing}}{{/layouts/page}}'],
    ['a template that calls a function wrongly', 'weekly.html.hbs', '{{thousands subject}}'],
  ])('is named, instead of the file that uses it: %s', async (_, file, text) => {
    await write(`templates/${file}`, text);
    const path = join(workspaceDir, 'templates', file);
    await expect(render('weekly')).rejects.toThrow(`The report weekly cannot be written: ${path}: `);
    await expect(render('weekly')).rejects.toThrow(TemplateError);
  });

  test('of the built-in ones points to what the workspace changes', async () => {
    await cp('reports/weekly', join(workspaceDir, 'reports/weekly'), { recursive: true });
    const file = join(workspaceDir, 'reports/weekly/report.yaml');
    await writeFile(file, (await readFile(file, 'utf8')).replace('model: weekly\n', ''));
    await expect(render('weekly')).rejects.toThrow(/report\.yaml, subject: .*\n/);
    await writeFile(file, (await readFile(file, 'utf8')).replace(/^(subject|preheader): .*$/gm, '$1: x'));
    await expect(render('weekly')).rejects.toThrow(/templates\/weekly\.html\.hbs: .*\nThat file is built in/);
  });
});

describe('the report of docs/reports.md', () => {
  /** A file the walkthrough names in backticks before a code block. */
  const STEP = /`((?:reports|templates)\/[\w./]+)`:?\n\n```\w+\n([^]*?)```/g;

  /** Renders it from the files whose names match. */
  async function sections(fits: RegExp) {
    const guide = await readFile('docs/reports.md', 'utf8');
    for (const [, file = '', text = ''] of guide.matchAll(STEP)) if (fits.test(file)) await write(file, text);
    const report = await prepared('sections');
    return { report, html: await report.page() };
  }

  test('five lines of YAML and one query make a page with a chart, plain text and an email', async () => {
    const { report, html } = await sections(/report\.yaml$|\.sql$/);
    const yaml = await readFile(join(workspaceDir, 'reports/sections/report.yaml'), 'utf8');
    expect(yaml.trim().split('\n')).toHaveLength(5);
    expect(report.subject).toBe('Acme & Sons, Oct 1 – 31, 2026: Sections');
    expect(html).toContain('<title>Sections</title>');
    expect(html).toMatch(
      /<td class="text" data-value="\/guides">\/guides<\/td><td class="number" align="right" data-value="\d+">[\d,]+<\/td>/,
    );
    expect(report.text()).toMatch(/\nSECTIONS\n\/[\w-]+: Human [\d,]+ · AI [\d,]+\n/);
    const { html: mail, pictures } = await report.email();
    expect(mail).toMatch(/alt="Sections. [^"]*\/guides: Human [\d,]+, AI [\d,]+[^]*\/guides<\/td>/);
    expect(pictures).toHaveLength(2);
    expect(JSON.parse(report.json())).toMatchObject({
      rows: { sections: expect.arrayContaining([]) as unknown[] },
    });
  });

  test('its own page needs no other change, and has the chart', async () => {
    const { html } = await sections(/./);
    expect(html).toMatch(/<h1>\/\S+ is read most: [\d,]+ human views\.<\/h1>/);
    expect(html).toMatch(/<svg role="img"[^>]*><title>Sections<\/title>/);
    expect(html).toMatch(/<rect [^>]*fill="var\(--human\)"/);
  });
});
