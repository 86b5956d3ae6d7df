import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { day } from '../../src/day.js';
import { readDeliveries } from '../../src/state/emails.js';
import { reportStep } from '../../src/steps/report.js';
import { serve, type TestServer } from '../serve.js';
import { insert } from '../stored-jobs.js';
import { postTo } from './posts.js';
import { keepSite, loadDays, type MailSite, mailSite, recordReported } from './site.js';

const EXAMPLE = /`(reports\/sections\/(?:report\.yaml|sections\.sql))`\n\n```\w+\n([^]*?)```/g;
const MONDAY = '2026-11-16T03:00:00Z';

let chat: TestServer;
let test: MailSite;

/** A site whose built-in pages are rendered, so that each test renders only its own. */
let base: string;
beforeAll(async () => {
  test = await mailSite();
  chat = await serve(() => undefined);
  await loadDays(test.history, day('2026-10-01'), day('2026-11-15'));
  expect((await report(MONDAY, {})).detail.pages).toHaveLength(2);
  await recordReported(test.state, new Date(MONDAY));
  base = await keepSite(test);
});

beforeEach(async () => {
  test = await mailSite(base);
  chat = await serve((_, response) => response.writeHead(202).end());
  for (const [, file = '', text = ''] of (await readFile('docs/reports.md', 'utf8')).matchAll(EXAMPLE))
    await write(file, text);
});

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(test.directory, file)), { recursive: true });
  await writeFile(join(test.directory, file), text);
}

const DOCS = { id: 'prj_1', name: 'Acme Docs' };

function report(time: string, reports: object, projects: object[] = [DOCS], more: object = {}) {
  const mail = { from: 'Readership <readership@example.com>' };
  const settings = { projects, reports, mail, channels: { chat: { kind: 'teams' } }, ...more };
  const channels = new Map([['chat', postTo('teams', chat.baseUrl).channel]]);
  return reportStep(test.partsAt(time, { settings, outgoing: { channels } }));
}

describe('a report that a workspace defines', () => {
  it('is rendered, emailed once and recorded like the built-in ones: a month, a week and a day', async () => {
    const yaml = await readFile(join(test.directory, 'reports/sections/report.yaml'), 'utf8');
    const sql = await readFile(join(test.directory, 'reports/sections/sections.sql'), 'utf8');
    for (const period of ['week', 'day']) {
      await write(`reports/by_${period}/report.yaml`, yaml.replace('month', period));
      await write(`reports/by_${period}/sections.sql`, sql);
    }
    const to = ['docs@example.com'];
    const reports = { sections: { to: [...to, 'chat'] }, by_week: { to }, by_day: { to } };
    const { detail, error } = await report(MONDAY, reports);
    expect(error).toBeUndefined();
    expect(detail.pages).toHaveLength(3);
    expect(await readFile(join(test.directory, 'pages/prj_1/sections-2026-10.html'), 'utf8')).toContain(
      '/page-1',
    );
    const sent = readDeliveries(test.state);
    expect(sent.map(({ report, period, state }) => `${report} ${period} ${state}`)).toEqual([
      'by_day 2026-11-15 sent',
      'by_week 2026-W46 sent',
      'sections 2026-10 sent',
      'sections 2026-10 sent',
    ]);
    const [post, ...more] = chat.seen;
    expect(more).toEqual([]);
    expect(post?.body).toContain('Acme Docs, Oct 1 – 31, 2026: Sections');
    expect(post?.body).toMatch(/"SECTIONS".+\/page-1: Human 3,069 · AI 1,519/);
    expect((await report(MONDAY, reports)).detail.deliveries).toEqual([]);
    expect(test.server.accepted.get('docs@example.com')).toHaveLength(3);

    expect((await report(MONDAY, reports)).summary).toMatch(/, 0 emails sent$/);
  });

  it('sends an audience its part of the site, and nothing of the rest', async () => {
    const some = { to: ['some@example.com'], where: '/page-[12]' };
    await report(MONDAY, { sections: [{ to: ['all@example.com'] }, some] });
    const [all = expect.fail()] = await test.mailsTo('all@example.com');
    const [part = expect.fail()] = await test.mailsTo('some@example.com');
    expect([all.subject, part.subject]).toEqual([
      'Acme Docs, Oct 1 – 31, 2026: Sections',
      'Acme Docs /page-[12], Oct 1 – 31, 2026: Sections',
    ]);
    expect(all.text).toContain('/page-3');
    expect(part.text).toContain('/page-2');
    expect(part.text).not.toContain('/page-3');
    await report(MONDAY, { sections: { to: ['below@example.com'], where: '/page-1/' } });
    const [below = expect.fail()] = await test.mailsTo('below@example.com');
    expect(below.subject).toContain('Acme Docs /page-1/**, ');
    await report(MONDAY, { sections: { to: ['none@example.com'], where: '/pgae/**' } });
    const [none = expect.fail()] = await test.mailsTo('none@example.com');
    expect(none.text).toContain('! No page that matches /pgae/** was viewed on these days.\n');
  });

  it('whose queries cannot be limited to a part is refused with the reason', async () => {
    await write('reports/sections/sections.sql', 'SELECT 1 AS one');
    const { error } = await report(MONDAY, { sections: { to: ['a@example.com'], where: '/sdks/**' } });
    expect(error).toHaveProperty('message', expect.stringMatching(/no query uses \$pages/));
  });

  it.each(['weekly', 'improve'])('as the built-in %s always covers the whole site', async (name) => {
    const { error } = await report(MONDAY, { [name]: { to: ['a@example.com'], where: '/sdks/**' } });
    expect(error).toHaveProperty(
      'message',
      expect.stringMatching(
        `^reports.${name}.where: the built-in report ${name} always covers the whole site. For /sdks/`,
      ),
    );
  });

  it('is a digest that begins with the project that has pull requests to review', async () => {
    for (const project of ['prj_1', 'prj_2'])
      await loadDays(test.history, day('2026-10-26'), day('2026-11-01'), project);
    await test.state.transaction(() => {
      insert(test.state, 'jobs', {
        reference: 'a',
        project: 'prj_2',
        path: '/page-1',
        state: 'completed',
        reason: 'much read',
        prompt: 'p',
        pr_link: 'https://code.example.com/pull/1',
        planned_at: '2026-10-28T00:00:00.000Z',
        ended_at: '2026-10-29T00:00:00.000Z',
        weekly_human: 0,
        weekly_ai: 0,
        weeks: '[]',
      });
    });
    const projects = [DOCS, { id: 'prj_2', name: 'Acme API' }];
    await report('2026-11-03T09:00:00Z', { improve: { to: ['head@example.com'], digest: true } }, projects);
    const [{ subject } = expect.fail()] = await test.mailsTo('head@example.com');
    expect(subject).toMatch(/: Acme API, agents: 1 pull request .+; 1 more project$/);
  });

  it('is one digest for several projects, sent when all are loaded', async () => {
    await loadDays(test.history, day('2026-10-01'), day('2026-10-30'), 'prj_2');
    const projects = [DOCS, { id: 'prj_2', name: 'Acme API' }, { id: 'prj_3' }];
    const sections = { to: ['head@example.com'], digest: true };
    const reports = { baseUrl: 'https://reports.example.com', sections };
    const at = '2026-11-01T09:00:00Z';
    expect((await report(at, reports, projects)).detail.held).toMatchObject([{ for: '1 missing day' }]);
    await loadDays(test.history, day('2026-10-31'), day('2026-10-31'), 'prj_2');
    expect((await report(at, reports, projects)).detail.deliveries).toMatchObject([
      { project: '-', state: 'sent' },
    ]);
    expect((await report(at, reports, projects)).detail.deliveries).toEqual([]);
    const [{ subject, text } = expect.fail()] = await test.mailsTo('head@example.com');
    expect(subject).toBe('Sections, Oct 1 – 31, 2026: Acme Docs: Sections; 2 more projects');
    // Without a name, a project is called by its id.
    expect(text).toContain('\nprj_3\nNo views are loaded for Oct 1 – 31: its history is empty.\n');
    const link = 'https://reports.example.com/prj_2/sections-2026-10.html';
    for (const words of ['Acme Docs: Sections\n', 'Acme API: Sections\n', link])
      expect(text).toContain(words);
  });

  it('is a digest of forty of which a chat gets the first ones whole, and how many more there are', async () => {
    const names = Array.from({ length: 39 }, (_, index) => `Docs ${index + 10}`);
    const projects = [DOCS, ...names.map((name, index) => ({ id: `prj_${index + 10}`, name }))];
    const weekly = { to: ['chat', 'head@example.com'], digest: true };
    const serve = { url: 'https://readers.example.com' };
    await report(MONDAY, { weekly }, projects, { serve });
    const body = chat.seen[0]?.body ?? '';
    const named = names.filter((name) => body.includes(`{"type":"TextRun","text":"${name}"}`));
    expect(named).toEqual(names.slice(0, named.length));
    const nothing = 'No views are loaded for Nov 9 – 15: its history is empty.';
    expect(body.split(`"text":"${nothing}"`)).toHaveLength(named.length + 1);
    const link = { type: 'Action.OpenUrl', url: 'https://readers.example.com/reports' };
    expect(body).toContain(`"text":"${39 - named.length} more: "}`);
    expect(body).toContain(`"text":"Open the report","selectAction":${JSON.stringify(link)}}`);
    expect(named.length).toBeGreaterThan(10);
    const [{ text } = expect.fail()] = await test.mailsTo('head@example.com');
    for (const name of names) expect(text).toContain(`\n${name}\n${nothing}\n`);
  });

  it('with mail: false is not emailed, and the configuration is refused', async () => {
    const yaml = await readFile(join(test.directory, 'reports/sections/report.yaml'), 'utf8');
    await write('reports/sections/report.yaml', `${yaml}mail: false\n`);
    const { error } = await report(MONDAY, { sections: { to: ['a@example.com'] } });
    expect(error).toHaveProperty('message', expect.stringContaining('says mail: false'));
    expect(test.server.accepted.size).toBe(0);
  });
});
