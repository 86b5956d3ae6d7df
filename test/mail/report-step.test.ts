import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.js';
import { day } from '../../src/day.js';
import { ConfigurationError } from '../../src/errors.js';
import { resolved } from '../../src/mail/delivery.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { readDeliveriesTo, storeDelivery } from '../../src/state/emails.js';
import { OtherPlaceError } from '../../src/state/workspace.js';
import { recover, Sender } from '../../src/state/sender.js';
import { mailLines } from '../../src/print/emails.js';
import { unsettledLines } from '../../src/print/status.js';
import { readUnsettled } from '../../src/service/status.js';
import { recordChoices } from '../../src/steps/improve.js';
import { findReport } from '../../src/reports/definition.js';
import { ISO_CALENDAR, periodNamed } from '../../src/reports/period.js';
import { mailingsOf, readViews, sendMailing } from '../../src/steps/mailing.js';
import { reportStep } from '../../src/steps/report.js';
import { forgetDayFailure, recordDayFailure } from '../../src/state/days.js';
import { planFrom } from '../agents/reading.js';
import { execute } from '../open-history.js';
import { runtimeIn } from '../run-cli.js';
import { type GivenParts, partsOf } from '../steps/parts-of.js';
import { useSmallReports } from '../small-reports.js';
import { delivery } from './letters.js';
import { startMailServer } from './mail-server.js';
import { loadDays, type MailSite, mailSite, recordReported } from './site.js';

const GIVEN = {
  baseUrl: 'http://127.0.0.1',
  projects: [{ id: 'prj_1', name: 'Acme Docs' }],
  mail: { from: 'Readership <readership@example.com>' },
};
const settings = settingsSchema.parse({
  ...GIVEN,
  reports: { weekly: { to: ['docs@example.com', 'lead@example.com'] } },
});
const MONDAY = '2026-11-16T03:00:00Z';

let test: MailSite;

beforeEach(async () => {
  test = await mailSite();
});

const report = (time: string, { workspace, ...given }: GivenParts = {}) =>
  reportStep(
    test.partsAt(time, { workspace: { settings, projects: settings.projects, ...workspace }, ...given }),
  );

describe('the report step', () => {
  it('is summed up in one line for each report and project, and one for each failure', async () => {
    await useSmallReports(test.directory);
    const projects = [...settings.projects, { ...settings.projects[0], id: 'prj_2', name: 'Other Docs' }].map(
      (project) => ({ apiKeyEnv: 'KEY', ...project }),
    );
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'), 'prj_2');
    const { runtime: screen } = runtimeIn('/');
    const lines = (reported: Awaited<ReturnType<typeof report>>['detail']) =>
      mailLines({ reported }, partsOf(test.history, { state: test.state, workspace: { projects } }), screen);
    const sent = await report(MONDAY, { workspace: { settings: { ...settings, projects }, projects } });
    const to = 'docs@example.com and lead@example.com';
    expect(lines(sent.detail)).toEqual([
      `weekly 2026-W46, Acme Docs: sent to ${to}`,
      `weekly 2026-W46, Other Docs: sent to ${to}`,
    ]);
    test.server.behaviors.set('lead@example.com', [{ on: 'rcpt', do: 550 }]);
    await loadDays(test.history, day('2026-11-16'), day('2026-11-22'));
    const { detail } = await report('2026-11-23T03:00:00Z');
    const until = new Date('2026-11-24T02:15:00Z');
    const waits = { report: 'weekly', period: '2026-W47', project: 'prj_2', for: '2 missing days' };
    const held = [until, null].map((end) => ({ ...waits, until: end }));
    expect(lines({ ...detail, held })).toEqual([
      expect.stringMatching(/^weekly 2026-W47 to lead@example.com: not delivered \(.*550/) as string,
      'weekly 2026-W47, Acme Docs: sent to docs@example.com',
      `weekly 2026-W46, Other Docs: already sent to ${to}`,
      'weekly 2026-W47, Other Docs: waiting for 2 missing days until Nov 24, 2026 at 02:15 UTC at the latest',
      'weekly 2026-W47, Other Docs: waiting for 2 missing days',
    ]);
  });

  it('renders a page again once days were loaded or failed, as readers would see it now', async () => {
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    expect((await report(MONDAY)).summary).toBe('2 pages rendered, 2 emails sent');
    await mkdir(join(test.directory, 'templates'));
    await writeFile(join(test.directory, 'templates/weekly.html.hbs'), '<title>{{subject}}</title>');
    await recordReported(test.state, new Date(MONDAY));
    const earlier = "TIMESTAMP '2026-11-16 02:59:59'";
    const later = "TIMESTAMP '2026-11-16 03:00:00'";
    const set = (columns: string) => execute(test.history, `UPDATE days SET ${columns}`);
    // Days that were read again and are unchanged are nothing new.
    await set(`loaded_at = ${earlier}, checked_at = ${later}`);
    expect((await report(MONDAY)).summary).toMatch(/^0 pages rendered/);
    const failed = { project: 'prj_1', day: day('2026-11-10') };
    await recordDayFailure(test.state, { ...failed, now: new Date('2026-11-16T03:00:00Z') }, 'refused');
    expect((await report(MONDAY)).summary).toMatch(/^2 pages rendered/);
    await test.state.transaction(() => forgetDayFailure(test.state, failed));
    await set(`loaded_at = ${later}`);
    const { detail, summary } = await report(MONDAY);
    expect(summary).toMatch(/^2 pages rendered/);
    const weekly = detail.pages.find(({ file }) => file.includes('weekly')) ?? expect.fail();
    expect(weekly.subject).toMatch(/^Acme.*: /);
    expect(await readFile(weekly.file, 'utf8')).toContain(`<title>${weekly.subject}`);
  });

  it('counts the days of its period, and no others', async () => {
    await loadDays(test.history, day('2026-11-02'), day('2026-11-22'));
    const period = periodNamed('2026-W46', ISO_CALENDAR) ?? expect.fail();
    for (const where of [undefined, '/page-*']) {
      const audience = { to: [], digest: false, where };
      const given = { projects: settings.projects, audience };
      expect(await readViews(test.history, given, period)).toMatchObject({
        days: 7,
        expected: 7,
        human: 5348,
      });
    }
  });

  it('sends nothing about a period before its last day has ended', async () => {
    const parts = test.partsAt('2026-11-15T23:59:59Z');
    const [mailing = expect.fail()] = mailingsOf(
      { settings, projects: settings.projects },
      await findReport('weekly', undefined),
    );
    const period = periodNamed('2026-W46', ISO_CALENDAR) ?? expect.fail();
    const sources = { reader: test.history, selectNow: () => Promise.resolve(undefined) };
    const given = { mailing, period, recipients: mailing.audience.to, ...sources };
    await expect(sendMailing(parts, { ...given, admission: 'force' })).rejects.toThrow(
      /its last day, Nov 15, 2026, has not ended/,
    );
  });

  it('lists the pages up next as they are now, and not as of the last selection', async () => {
    await loadDays(test.history, day('2026-08-03'), day('2026-11-15'));
    const improved = {
      ...settings,
      reports: settingsSchema.parse({ ...GIVEN, reports: { improve: { to: ['docs@example.com'] } } }).reports,
    };
    const stores = { reader: test.history, state: test.state };
    const now = new Date(MONDAY);
    const rules = { ...improved.improve, exclude: ['/page-7'] };
    const before = await planFrom(stores, 'prj_1', rules, { now });
    await test.state.transaction(() => {
      recordChoices(test.state, 'prj_1', before, now);
    });
    const { detail } = await report(MONDAY, { workspace: { settings: improved } });
    const [mail = expect.fail()] = await test.mailsTo('docs@example.com');
    expect(mail.text?.match(/\/page-\d(?=\n {2}Up next\n)/g)).toEqual(['/page-6', '/page-7', '/page-8']);
    const page = detail.pages.find(({ file }) => file.includes('improve')) ?? expect.fail();
    const rows = (await readFile(page.file, 'utf8')).split('<tr>').filter((row) => row.includes('>Up next<'));
    expect(rows.map((row) => /page-\d/.exec(row)?.[0])).toEqual(['page-6', 'page-7', 'page-8']);
  });

  it('emails the week that has ended to everyone, once, however often it runs', async () => {
    await loadDays(test.history, day('2026-10-12'), day('2026-11-15'));
    expect((await report(MONDAY)).summary).toBe('2 pages rendered, 2 emails sent');
    for (const time of [MONDAY, '2026-11-16T04:00:00Z', '2026-11-22T23:59:00Z'])
      expect((await report(time)).detail.deliveries).toEqual([]);
    for (const recipient of ['docs@example.com', 'lead@example.com'])
      expect(await test.mailsTo(recipient)).toHaveLength(1);
    const [mail = expect.fail()] = await test.mailsTo('docs@example.com');
    expect(mail.subject).toContain('Acme Docs, Nov 9 – 15, 2026: ');
    expect(mail.text).toContain('5,348');
    expect(mail.html).toContain('5,348');
    for (const part of [mail.text, mail.html])
      expect(part).toContain(
        'Sent by Readership on behalf of readership@example.com. To unsubscribe, reply to this email.',
      );
  });

  it('waits for a missing day until it is loaded, or the longest wait is over, and then says so', async () => {
    await useSmallReports(test.directory);
    await loadDays(test.history, day('2026-11-02'), day('2026-11-14'));
    for (const time of [MONDAY, '2026-11-17T02:14:00Z']) {
      const { detail } = await report(time);
      expect(detail.deliveries).toEqual([]);
      expect(detail.held).toMatchObject([
        {
          report: 'weekly',
          period: '2026-W46',
          for: '1 missing day',
          until: new Date('2026-11-17T02:15:00Z'),
        },
      ]);
    }
    // A project that is new is still being loaded.
    const attempted = (at: string) =>
      execute(test.history, 'UPDATE days SET first_loaded_at = $at::TIMESTAMP', { at });
    await attempted('2026-11-17T02:00:00Z');
    const until = new Date('2026-11-18T02:00:00Z');
    expect((await report('2026-11-17T02:15:00Z')).detail.held).toMatchObject([{ until }]);
    await attempted('2027-11-17T02:00:00Z');
    expect((await report('2026-11-17T02:15:00Z')).detail.deliveries).toHaveLength(2);
    const [mail = expect.fail()] = await test.mailsTo('docs@example.com');
    for (const part of [mail.text, mail.html]) expect(part).toMatch(/Nov\s+15\s+is\s+not\s+loaded/);
    // The next week waits for two days, and not once they are loaded.
    await loadDays(test.history, day('2026-11-15'), day('2026-11-20'));
    expect((await report('2026-11-23T03:00:00Z')).detail.held).toMatchObject([{ for: '2 missing days' }]);
    await loadDays(test.history, day('2026-11-21'), day('2026-11-22'));
    expect((await report('2026-11-23T05:00:00Z')).detail.deliveries).not.toEqual([]);
  });

  it('names an email that a killed process was sending until it is settled, and does not send it again', async () => {
    await useSmallReports(test.directory);
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    const { state, sender, worker } = test;
    const now = new Date(MONDAY);
    const key = { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient: 'docs@example.com' };
    await sender.begin(
      now,
      (attempt) => storeDelivery(state, { ...delivery(key, 'sending', now), attempt }) === 1,
      () => expect.fail('the witness was written'),
    );
    expect(await recover(state, worker, now)).toMatchObject({ emails: 1 });
    for (const time of ['2026-11-16T04:00:00Z', '2026-12-16T05:00:00Z']) {
      const { detail, summary } = await report(time);
      expect(detail.deliveries.map(({ recipient }) => recipient)).not.toContain('docs@example.com');
      expect(summary).toMatch(/; 1 may or may not have arrived: readership status$/);
      const [first] = unsettledLines(readUnsettled(state, [], new Date()));
      expect(first).toMatch(/^weekly 2026-W46 may or may not have reached docs@example\.com/);
    }
    expect(await test.mailsTo('docs@example.com')).toEqual([]);
    const [unknown = expect.fail()] = readDeliveriesTo(state, key);
    await state.transaction(() => storeDelivery(state, resolved(unknown, 'delivered', now)));
    expect((await report('2026-12-16T06:00:00Z')).summary).not.toContain('may or may not');
  });

  it('sends a period once to the same person, however the address is written, and whether it is a digest', async () => {
    await useSmallReports(test.directory);
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    const to = ['docs@example.com', 'Lead@example.com'];
    const sentTo = async (weekly: object, time = MONDAY) => {
      const given = settingsSchema.parse({ ...GIVEN, reports: { weekly } });
      const { detail } = await report(time, { workspace: { settings: given } });
      return detail.deliveries.map(({ recipient, project }) => `${recipient} ${project}`);
    };
    expect(await sentTo({ to: [...to, 'DOCS@EXAMPLE.COM', 'lead@example.com'] })).toEqual([
      'docs@example.com prj_1',
      'Lead@example.com prj_1',
    ]);
    expect(await sentTo({ to: ['Docs@example.com', 'lead@example.com'] })).toEqual([]);
    const digest = { to: ['LEAD@example.com', 'new@example.com'], digest: true };
    expect(await sentTo(digest)).toEqual(['new@example.com -']);
    expect(await sentTo({ to: ['New@example.com', ...to] })).toEqual([]);
    await loadDays(test.history, day('2026-11-16'), day('2026-11-22'));
    expect(await sentTo(digest, '2026-11-23T03:00:00Z')).toHaveLength(2);
    expect(test.server.accepted.size).toBe(4);
  });

  it('is retried later if everything that failed will be, and is still retried after the next week has begun', async () => {
    await useSmallReports(test.directory);
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    test.server.behaviors.set('docs@example.com', [{ on: 'rcpt', do: 451 }]);
    const { error, summary } = await report('2026-11-22T23:58:00Z');
    expect(error).toMatchObject({ exitCode: 75 });
    expect(summary).toBe('2 pages rendered, 1 email sent, 1 not');
    // Who joined since gets no old news.
    const to = ['docs@example.com', 'lead@example.com', 'new@example.com'];
    const joined = settingsSchema.parse({ ...GIVEN, reports: { weekly: { to } } });
    const { detail } = await report('2026-11-23T00:04:00Z', { workspace: { settings: joined } });
    expect(detail.deliveries).toMatchObject([
      { recipient: 'docs@example.com', period: '2026-W46', state: 'sent', attempts: 2 },
    ]);
  });

  it('says once that the mail server takes no more, and what waits for it', async () => {
    await useSmallReports(test.directory);
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    const gone = await startMailServer();
    await gone.close();
    const transport = () => smtpTransport(`smtp://127.0.0.1:${gone.port}`);
    const { detail, error, summary } = await report(MONDAY, { outgoing: { transport } });
    expect(summary).toBe('2 pages rendered, 0 emails sent');
    expect(error).toMatchObject({ exitCode: 75 });
    expect(error).toHaveProperty('message', expect.stringMatching(/^The mail server .*ECONNREFUSED/));
    const { runtime: screen } = runtimeIn('/');
    expect(mailLines({ reported: detail }, partsOf(test.history, { state: test.state }), screen)).toEqual([
      'weekly 2026-W46, prj_1: waiting for the mail server (2 recipients)',
    ]);
    expect((await report('2026-11-16T05:00:00Z')).detail.deliveries).toMatchObject(
      ['docs@example.com', 'lead@example.com'].map((recipient) => ({
        recipient,
        state: 'sent',
        attempts: 1,
      })),
    );
  });

  it('has nothing to report of a new site, and sends no old news after weeks offline', async () => {
    await useSmallReports(test.directory);
    expect(await report(MONDAY)).toMatchObject({ detail: { pages: [], deliveries: [] }, error: undefined });
    await loadDays(test.history, day('2026-11-02'), day('2026-12-06'));
    // After an interruption, nothing is begun.
    const stopped = await report('2026-12-07T03:00:00Z', { session: { signal: AbortSignal.abort() } });
    expect(stopped.detail).toMatchObject({ pages: [], deliveries: [] });
    // Neither does a copy send anything.
    const { state, worker, here } = test;
    const whyNot = () => Promise.resolve(undefined);
    const witness = join(test.directory, 'witness');
    const sender = new Sender({ state, worker, here: { ...here, host: 'web-2' }, witness, whyNot });
    const kept = await report('2026-12-07T03:00:00Z', { sender });
    expect(kept.detail.deliveries).toEqual([]);
    expect(kept.error).toBeInstanceOf(OtherPlaceError);
    const { detail } = await report('2026-12-07T03:00:00Z');
    expect(detail.deliveries.map(({ period }) => period)).toEqual(['2026-W49', '2026-W49']);
  });

  it('names the weeks without an email after weeks offline, with links to their pages', async () => {
    await useSmallReports(test.directory);
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    const served = {
      ...settings,
      reports: { ...settings.reports, baseUrl: 'https://reports.example.com' },
    };
    const given = { workspace: { settings: served } };
    await report(MONDAY, given);
    await loadDays(test.history, day('2026-11-16'), day('2026-12-06'));
    const { detail } = await report('2026-12-07T03:00:00Z', given);
    expect(detail.deliveries.map(({ period }) => period)).toEqual(['2026-W49', '2026-W49']);
    const [, mail = expect.fail()] = await test.mailsTo('docs@example.com');
    const unsent = [
      ['Nov 16 – 22, 2026', '2026-W47'],
      ['Nov 23 – 29, 2026', '2026-W48'],
    ] as const;
    for (const [range, week] of unsent) {
      const page = `prj_1/weekly-${week}.html`;
      expect(await readFile(join(test.directory, 'pages', page), 'utf8')).toContain(range);
      expect(mail.text).toContain(`! No email was sent about ${range}: https://reports.example.com/${page}`);
      expect(mail.html).toMatch(
        new RegExp(`<a href="https://reports.example.com/${page}"[^>]*>${range}</a>`),
      );
    }
    expect(mail.text?.match(/No email/g)).toHaveLength(2);
    // The next one follows the last.
    await loadDays(test.history, day('2026-12-07'), day('2026-12-13'));
    await report('2026-12-14T03:00:00Z', given);
    const [, , next = expect.fail()] = await test.mailsTo('docs@example.com');
    expect(next.text).not.toContain('No email');
  });

  it('emails the other reports when the templates of one are broken, and records which is broken', async () => {
    await loadDays(test.history, day('2026-11-02'), day('2026-11-15'));
    const templates = join(test.directory, 'templates');
    const file = join(templates, 'weekly.html.hbs');
    await mkdir(templates);
    await writeFile(file, '{{#if x}');
    const { audiences } = settings.reports;
    const toBoth = { ...audiences, improve: audiences['weekly'] ?? [] };
    const both = { ...settings, reports: { ...settings.reports, audiences: toBoth } };
    const toAll = { workspace: { settings: both } };
    const { detail, error, summary } = await report(MONDAY, toAll);
    expect(detail.pages.map(({ file }) => basename(file))).toEqual(['improve-2026-W46.html']);
    const sentTwice = (report: string) => [1, 2].map(() => ({ report, state: 'sent' }));
    expect(detail.deliveries).toMatchObject(sentTwice('improve'));
    expect(summary).toBe('1 page rendered, 2 emails sent');
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toHaveProperty('message', expect.stringContaining(`weekly cannot be written: ${file}: `));

    await rm(templates, { recursive: true });
    const { detail: fixed } = await report('2026-11-16T04:00:00Z', toAll);
    expect(fixed.pages).toHaveLength(2);
    expect(fixed.deliveries).toMatchObject(sentTwice('weekly'));
  });
});
