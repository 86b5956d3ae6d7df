import { addDays } from 'date-fns';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { openHistory } from '../../src/history/history.js';
import { emptyState, openState } from '../../src/state/open.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { hashPassword } from '../../src/web/access.js';
import { Proposals } from '../../src/web/proposals.js';
import { otherProcess } from '../state/other-process.js';
import {
  askAt,
  cookieIn,
  NOW,
  serveSite,
  signInAt,
  type Site,
  storedSite,
  submitAt,
  workspaceIn,
} from './site.js';

let directory: string;
let site: Site;
/** Behind a proxy, where only ann may act. */
let viewed: Site;
/** Of a browser that opened the link. */
let session: string;

beforeAll(async () => {
  directory = await storedSite();
  site = await serveSite(directory);
  viewed = await serveSite(directory, { auth: 'proxy', header: 'x-user', editors: ['ann'] });
  session = cookieIn(await ask(`/?token=${site.token}`, {}));
});

const ask = (path: string, headers?: Record<string, string>, of = site) => askAt(of, path, headers);

describe('an action', () => {
  const skip = { project: 'prj_1', action: 'skip', path: '/quickstart', days: '28' };
  const tokenIn = (text: string) => /name="token" value="([\w-]+)"/.exec(text)?.[1] ?? '';

  const act = (
    fields: Record<string, string>,
    headers: Record<string, string> = { origin: site.origin },
    of = site,
    cookie = session,
  ) => submitAt(of, '/agents', fields, { cookie, ...headers });

  it('is refused from another site, without its token, from a viewer, and for a form that no page contains', async () => {
    const token = tokenIn((await ask('/agents')).text);
    expect(token).toHaveLength(43);
    expect((await act({ ...skip, token }, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await act({ ...skip, token }, {})).status).toBe(403);
    expect((await act(skip)).status).toBe(409);
    expect((await act({ ...skip, token: site.token })).status).toBe(409);
    expect((await act({ ...skip, token }, { origin: site.origin }, site, 'a=b')).status).toBe(401);
    expect((await act({ ...skip, token, action: 'delete' })).status).toBe(400);
    expect((await act({ ...skip, token, days: '-1' })).status).toBe(400);
    const asViewer = { 'x-user': 'bob', origin: viewed.origin };
    const seen = (await ask('/agents', asViewer, viewed)).text;
    expect(tokenIn(seen)).toBe('');
    expect((await act({ ...skip, token }, asViewer, viewed)).status).toBe(403);
    expect((await act({ ...skip, token, project: 'prj_x' })).status).toBe(404);
    // An identity provider may write the address in another case than the configuration.
    expect(tokenIn((await ask('/agents', { ...asViewer, 'x-user': 'Ann' }, viewed)).text)).not.toBe('');
  });

  it('is carried out at once, and its page shows the result, while another process works too', async () => {
    const exporting = await otherProcess(join(directory, 'data'));
    await exporting.does('acquire', 0);
    const token = tokenIn((await ask('/agents')).text);
    /** Sends a form; the page that follows. */
    const done = async (fields: Record<string, string>) => {
      const { status, headers } = await act({ project: 'prj_1', token, ...fields });
      expect(status).toBe(303);
      return (await ask(String(headers['location']))).text;
    };
    const skipped = await done(skip);
    expect(skipped).toMatch(
      /Skip \/quickstart<\/b>: skipped until Dec 16, 2026<[^]+quickstart<\/bdi>[^]{0,99}<td>skipped by your team until Dec 16, 2026[^]+value="unskip"/,
    );
    const unskipped = await done({ action: 'unskip', path: skip.path });
    expect(unskipped).toContain('it can be flagged again');
    expect(unskipped).not.toContain('value="unskip"');
    // A form that is sent twice is carried out once.
    expect(await done({ action: 'unskip', path: skip.path })).toContain('it can be flagged again');
    for (const [days, until] of [
      ['91', 'skipped until Feb 17, 2027'],
      ['ever', 'skipped until you undo it'],
    ] as const)
      expect(await done({ ...skip, days })).toContain(until);
    await done({ action: 'unskip', path: skip.path });
    const note = { project: 'prj_1', action: 'note', token, path: '/guides/*' };
    expect((await act({ ...note, date: '2026-02-30', text: 'x' })).status).toBe(400);
    const noted = await done({ ...note, date: '2026-11-10', text: '<b>New</b> navigation', break: 'on' });
    expect(noted).toMatch(
      /: added to notes\.yaml<[^]+id="notes"[^]+&lt;b&gt;New&lt;\/b&gt; navigation[^]+Nov 10, 2026[^]+Counting changed/,
    );
    const attempt = /name="job" value="5"><input type="hidden" name="attempt" value="(.+?)"/.exec(
      (await ask('/agents')).text,
    )?.[1];
    const settle = { action: 'settle', job: '5', as: 'notSent', remote: '' };
    const late = await act({ ...settle, project: 'prj_1', token, attempt: '99' });
    expect(late.status).toBe(409);
    expect(late.text).toMatch(/Record the outcome of job 5[^]+sent again, in the meantime/);
    expect(await done({ ...settle, attempt: attempt ?? '' })).toContain(
      ': Job 5 is planned again, and the next run that may create jobs sends it.',
    );
    /** Presses a button of the form that settles a job. */
    const settleAs = async (id: string, as: string, rest = {}) => {
      const { text } = await ask('/agents');
      const [form = '', sent = ''] =
        new RegExp(`name="job" value="${id}"><input[^>]*name="attempt" value="(.+?)">[^]+?</form>`).exec(
          text,
        ) ?? [];
      expect(form).toContain(`name="as" value="${as}"`);
      return done({ action: 'settle', job: id, attempt: sent, as, ...rest });
    };
    const firstIn = async (state: string) =>
      new RegExp(`job (\\d+), ${state},`).exec((await ask('/agents')).text)?.[1] ?? '';
    // What is recorded by mistake is settled again.
    const reviewed =
      /name="job" value="(\d+)">(?:(?!<form)[^])+?value="merged"/.exec((await ask('/agents')).text)?.[1] ??
      '';
    expect(await settleAs(reviewed, 'merged', { day: '2026-11-17' })).toContain(': Merged on Nov 17, 2026.');
    expect(await settleAs(reviewed, 'closed')).toContain(
      ': Closed without a merge. Its page gets another job only if you approve it.',
    );
    expect(await settleAs(reviewed, 'ended')).toContain(': Its pull request waits for review again.');
    // What waits is never sent, and what is over ends, each in its own stage.
    for (const [state, answer] of [
      ['planned', 'is never sent'],
      ['active', 'is over, and is no longer polled'],
    ] as const) {
      const id = await firstIn(state);
      const ended = await settleAs(id, 'ended');
      expect(ended).toContain(`: Job ${id} ${answer}`);
      expect(ended).not.toContain(`job ${id}, ${state}`);
    }
    expect(site.errors).toEqual([]);
    await exporting.does('release');
  });

  it('that would send something is refused in a copy', async () => {
    const state = (await openState(join(directory, 'data'))) ?? expect.fail('no state');
    const { host } = readWorkspaceRow(state);
    const moveTo = (host: string) => state.change('UPDATE workspace SET host = $host', { host });
    const token = tokenIn((await ask('/agents')).text);
    await moveTo('elsewhere');
    for (const fields of [
      { action: 'message', job: '1', form: 'shown', text: 'Mention the limits' },
      { action: 'approve', path: '/quickstart', digest: '', instruction: 'Improve it' },
    ])
      expect((await act({ project: 'prj_1', token, ...fields })).text).toContain('readership adopt');
    await moveTo(host);
    state.close();
  });

  it('keeps what was typed when its form or its session is from before a restart', async () => {
    const passwords = ['before the restart', 'after the restart'] as const;
    const [before, after] = await Promise.all(passwords.map(hashPassword));
    const serve = (password = '', port = 0) => serveSite(directory, { auth: 'password', password, port });
    const old = await serve(before);
    const cookie = cookieIn(await signInAt(old, passwords[0]));
    const { text: page } = await ask('/agents', { cookie }, old);
    const field = (name: string, from: string) =>
      new RegExp(`name="${name}" value="([^"]+)"`).exec(from)?.[1] ?? '';
    await old.stop();
    const of = await serve(after, old.port);
    const typed = { path: '/quickstart', digest: field('digest', page), instruction: 'Rewrite <this> part' };
    const hidden = { token: tokenIn(page), form: field('form', page) };
    const form = { project: 'prj_1', ...hidden, action: 'approve', ...typed };
    // A session ends when its password changes. What was typed is shown, and the form after signing in.
    expect((await ask('/agents', { cookie }, of)).status).toBe(401);
    const out = await act(form, { origin: of.origin }, of, cookie);
    expect(out.status).toBe(401);
    expect(out.text).toMatch(
      /To submit it again[^]+then reload this page[^]+<textarea readonly[^>]*>Rewrite &lt;this&gt; part</,
    );
    expect(cookieIn(await signInAt(of, passwords[0]))).toBe('undefined');
    const again = await act(form, { origin: of.origin }, of, cookieIn(await signInAt(of, passwords[1])));
    expect(again.status).toBe(409);
    expect(again.text).toMatch(
      /Approve \/quickstart[^]+<textarea name="instruction"[^>]*>Rewrite &lt;this&gt; part</,
    );
    expect(field('digest', again.text)).toBe(typed.digest);
    expect(tokenIn(again.text)).not.toBe(form.token);
    const stale = { project: 'prj_1', token: 'old' };
    const message = { action: 'message', job: '1', form: 'shown', text: 'Mention <limits>' };
    expect((await act({ ...stale, ...message })).text).toMatch(
      /name="job" value="1">\s*<textarea name="text"[^>]*>Mention &lt;limits/,
    );
  });

  it('can be taken on the page itself, and on one that there is no room for, and the first click counts', async () => {
    const directory = await storedSite();
    const config = join(directory, 'readership.yaml');
    const settings = await readFile(config, 'utf8');
    await writeFile(
      config,
      settings.replace('maxOpenPullRequests: 100', 'mode: apply, maxOpenPullRequests: 1'),
    );
    const of = await serveSite(directory);
    const cookie = cookieIn(await ask(`/?token=${of.token}`, {}, of));
    const press = async (page: string, path: string, action: string) => {
      const { text } = await ask(page, { cookie }, of);
      const [, ...forms] = text.split('<form method="post"');
      const form = forms.find((one) => one.includes(`name="path" value="${path}"`)) ?? '';
      const hidden = [...form.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)];
      const fields: Record<string, string> = {};
      for (const [, name = '', value = ''] of hidden) fields[name] = value;
      const instruction = /<textarea[^>]*>([^]*?)<\/textarea>/.exec(form)?.[1] ?? '';
      const given = {
        ...fields,
        instruction: instruction.replaceAll('&quot;', '"').replaceAll('&#x27;', "'"),
      };
      const sent = (action: string) =>
        act({ ...given, action, days: '28' }, { origin: of.origin }, of, cookie);
      // Both buttons, one after the other, before the page has changed.
      const [first, second] = [await sent(action), await sent(action === 'skip' ? 'approve' : 'skip')];
      expect(first.status, /role="alert">(.*)/.exec(first.text)?.[1]).toBe(303);
      expect(second.headers['location']).toBe(first.headers['location']);
      return (await ask(String(first.headers['location']), { cookie }, of)).text;
    };
    const all = (await ask('/agents', { cookie }, of)).text;
    expect(all).toContain('when there is room: at most 1 open pull request (improve.maxOpenPullRequests)');
    const [one = '', two = ''] = [
      ...(all.split('Up next')[1] ?? '').matchAll(/name="path" value="([^"]+)"/g),
    ].map(([, path = '']) => path);
    const approved = await press('/agents', one, 'approve');
    expect(approved).toMatch(
      /is approved: it comes next, when there is room: at most 1 open pull request \(improve\.maxOpenPullRequests\)/,
    );
    expect(approved).not.toContain(`name="path" value="${one}"`);
    const skipped = await press(`/page?path=${two}`, two, 'skip');
    expect(skipped).toMatch(/<h1 class="path">[^]+skipped until Dec 16, 2026[^]+value="unskip"/);
    expect(skipped).not.toContain('value="approve"');
    expect((await ask(`/page?path=${one}`, { cookie }, of)).text).toMatch(/Has job \d+, planned\./);
  });

  it('may be about a page that is not flagged: its prompt is shown, or why it cannot get a job', async () => {
    const all = (await ask('/agents')).text;
    const [flagged = '', next = ''] = all.split('id="proposals"')[1]?.split('Up next') ?? [];
    const other = /<a href="\/page\?path=([^"]+)"/.exec(next)?.[1] ?? '';
    expect(other).not.toBe('');
    expect(flagged).not.toContain(`path=${other}"`);
    const { text } = await ask(`/agents?path=${other}`);
    expect(text.match(/<article class="card proposal"/g)).toHaveLength(1);
    expect(text).toContain(`name="path" value="${decodeURIComponent(other)}"`);
    expect((await ask('/agents?path=/nowhere')).text).toMatch(/nowhere<\/bdi> cannot get a job: fewer than/);
    // However many pages could be flagged, they are read once a day.
    const workspace = await workspaceIn(directory);
    const history = await openHistory(workspace.historyFile);
    const query = vi.spyOn(history, 'query');
    const reader = {
      query: history.query.bind(history),
      storedDays: history.storedDays.bind(history),
      state: emptyState(),
      version: '1',
    };
    const proposals = new Proposals(workspace);
    for (const project of workspace.projects)
      for (const now of [NOW, addDays(NOW, 1)])
        for (const path of ['', '/quickstart', '/nowhere']) await proposals.of(reader, project, now, path);
    expect(query.mock.calls.filter(([sql]) => sql.includes('ranked AS'))).toHaveLength(2);
    history.close();
  });
});
