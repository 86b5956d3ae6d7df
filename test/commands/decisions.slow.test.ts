import { setTimeout } from 'node:timers/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openState } from '../../src/state/open.js';
import { readJobs } from '../../src/state/jobs.js';
import { agentSite } from '../agents/agent-site.js';
import { steadyPages } from '../agents/reading.js';
import { afterTest } from '../cleanup.js';
import { runCli, startCli } from '../run-cli.js';
import { startSandbox } from '../sandbox/faulty-sandbox.js';
import { otherProcess } from '../state/other-process.js';
import { endedWith } from './workspace.js';

/** A workspace whose pages 1 to 6 may get jobs, as its processes and its state have it. */
async function decided(more = '') {
  const sandbox = await startSandbox({ now: () => new Date(), jobSeconds: 3600 });
  const site = await agentSite(sandbox, steadyPages(6), `{ maxJobsPerWeek: 20 }${more}`);
  const dataDir = join(site.cwd, 'data');
  const state = (await openState(dataDir)) ?? expect.fail('no state');
  afterTest(() => {
    state.close();
  });
  const run = (...args: string[]) => runCli(args, site);
  return {
    sandbox,
    site,
    dataDir,
    run,
    jobs: () => readJobs(state, sandbox.projectId),
    created: () => sandbox.inspect().jobs.length,
    digestOf: async (page: string) => {
      const { stdout } = await run('improve', '--verbose');
      return new RegExp(`${page}#(\\w+):`).exec(stdout)?.[1] ?? expect.fail(stdout);
    },
  };
}

it('two people who approve the same page at once get the same job', async () => {
  const { run, jobs, created, digestOf } = await decided();
  const page = `/guides/page-3#${await digestOf('/guides/page-3')}`;
  const both = await Promise.all([1, 2].map(() => run('improve', '--apply', page)));
  for (const { stdout } of both) expect(stdout).toMatch(/^\/guides\/page-3: job 1 /);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  endedWith(0, await run('jobs', 'poll'));
  expect(jobs().map(({ path, state }) => [path, state])).toEqual([['/guides/page-3', 'active']]);
  expect(created()).toBe(1);
});

it('what is decided while an export runs is stored at once, and sent afterwards', async () => {
  const { dataDir, run, jobs, created, digestOf } = await decided();
  const digest = await digestOf('/guides/page-2');
  const exporting = await otherProcess(dataDir);
  await exporting.does('acquire', 0);
  expect((await run('improve', '--apply', '/guides/page-2#00000000')).stdout).toContain(
    'no job: its prompt changed since 00000000 was shown',
  );
  const approved = endedWith(0, await run('improve', '--apply', `/guides/page-2#${digest}`));
  expect(approved.stdout).toBe(
    '/guides/page-2: job 1 is approved. `readership export` is running; the next run after it sends it.\n',
  );
  const skipped = endedWith(0, await run('improve', '--skip', '/guides/page-4'));
  expect(skipped.stdout).toContain('/guides/page-4: skipped');
  expect((await run('improve', '--apply', '/guides/page-4')).stdout).toContain('no job: skipped manually');
  endedWith(0, await run('improve', '--unskip', '/guides/page-4'));
  expect(jobs().map(({ state, is_approved }) => [state, is_approved])).toEqual([['planned', true]]);
  expect(created()).toBe(0);
  await exporting.does('release');
  endedWith(0, await run('jobs', 'poll'));
  expect(jobs().map(({ state }) => state)).toEqual(['active']);
  expect(created()).toBe(1);
});

it('`readership start` sends what was approved within a minute, whatever its schedules say', async () => {
  const { site, dataDir, run, jobs } = await decided(
    "\nschedule: { poll: '0 0 1 1 *', report: '0 0 1 1 *' }",
  );
  const service = startCli(['start'], site);
  await service.until(/"step":"report","outcome":"\w+"/);
  const exporting = await otherProcess(dataDir);
  await exporting.does('acquire', 30_000);
  // The service has loaded days of the platform, with its own pages.
  const { stdout } = await run('improve', '--verbose');
  const page = /^ *(\/\S+)#\w+:/m.exec(stdout)?.[1] ?? expect.fail(stdout);
  endedWith(0, await run('improve', '--apply', page));
  await exporting.does('release');
  const approvedAt = performance.now();
  while (jobs()[0]?.state !== 'active') await setTimeout(100);
  expect(performance.now() - approvedAt).toBeLessThan(90_000);
  service.child.kill('SIGTERM');
  expect((await service.result).code).toBe(0);
});

it('a job whose approving process was killed before it sent is sent once, by the next worker', async () => {
  const { site, run, jobs, created } = await decided();
  const { child, result } = startCli(['improve', '--apply', '/guides/page-1'], site);
  while (jobs().length === 0) await setTimeout(2);
  child.kill('SIGKILL');
  await result;
  expect(jobs().map(({ state, is_approved }) => [state, is_approved])).toEqual([['planned', true]]);
  expect(created()).toBe(0);
  for (let times = 0; times < 2; times++) endedWith(0, await run('jobs', 'poll'));
  expect(jobs().map(({ state }) => state)).toEqual(['active']);
  expect(created()).toBe(1);
});

/** The web app of a workspace, in a process of its own, for somebody who has opened its link. */
async function webOf({ site }: Pick<Awaited<ReturnType<typeof decided>>, 'site'>) {
  const { child, until } = startCli(['serve', '--port', '0'], site);
  let said = '';
  child.stdout.on('data', (text: string) => (said += text));
  await until(/http:\S+/);
  const { href, origin } = new URL(/http:\S+/.exec(said)?.[0] ?? expect.fail(said));
  const link = await fetch(href, { redirect: 'manual' });
  const cookie = link.headers.get('set-cookie')?.split(';')[0] ?? expect.fail('not let in');
  const look = async (path = '/agents') => (await fetch(origin + path, { headers: { cookie } })).text();
  return {
    look,
    /** The form of a flagged page, as it is shown now. */
    formOf: async (path: string): Promise<Record<string, string>> => {
      const card = (await look()).split('<article').find((one) => one.includes(`value="${path}"`)) ?? '';
      const field = (name: string) => unescaped(new RegExp(`name="${name}" value="([^"]*)"`).exec(card)?.[1]);
      return {
        token: field('token'),
        form: field('form'),
        project: field('project'),
        digest: field('digest'),
        path,
        instruction: unescaped(/<textarea[^>]*>([^<]*)</.exec(card)?.[1]),
      };
    },
    submit: async (fields: Record<string, string>) => {
      const answer = await fetch(`${origin}/agents`, {
        method: 'POST',
        body: new URLSearchParams(fields),
        headers: { cookie, origin },
        redirect: 'manual',
      });
      const next = answer.headers.get('location');
      return { status: answer.status, text: next === null ? await answer.text() : await look(next) };
    },
  };
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>', '#x27': "'" };

const unescaped = (text = ''): string =>
  text.replaceAll(/&(amp|quot|lt|gt|#x27);/g, (_, name: string) => ENTITIES[name] ?? '');

it('in the web app, two people who approve a page at once get the same job, while an export runs too', async () => {
  const all = await decided();
  const { dataDir, jobs, created } = all;
  const web = await webOf(all);
  const exporting = await otherProcess(dataDir);
  await exporting.does('acquire', 0);
  const forms = [await web.formOf('/guides/page-3'), await web.formOf('/guides/page-3')];
  const both = await Promise.all(forms.map((form) => web.submit({ ...form, action: 'approve' })));
  for (const { status, text } of both) {
    expect(status).toBe(303);
    expect(text).toMatch(/job 1 is approved: it is sent after \S*readership export/);
    expect(text).toMatch(/>Approved<\/h2>[^]+page-3<\/bdi>[^]+job 1, planned, today/);
    expect(text).not.toContain('name="path" value="/guides/page-3"');
  }
  // A prompt that was edited is another one.
  const edited = await web.submit({ ...forms[0], instruction: 'Only fix the links.', action: 'approve' });
  expect(edited.status).toBe(409);
  expect(edited.text).toMatch(/Not approved: has job 1, planned\.[^]+<textarea[^>]*>Only fix the links\.</);
  const skipping = await web.formOf('/guides/page-4');
  const skipped = await web.submit({ ...skipping, action: 'skip', days: 'ever' });
  expect(skipped.text).toMatch(/page-4<\/bdi>[^]{0,99}<td>skipped manually[^]+value="unskip"/);
  expect(jobs().map(({ path, state }) => [path, state])).toEqual([['/guides/page-3', 'planned']]);
  expect(created()).toBe(0);
  await exporting.does('release');
  while (jobs()[0]?.state !== 'active') await setTimeout(20);
  expect(created()).toBe(1);
  expect(await web.look()).toContain('job 1, active');
  // A message that is sent twice by a double click arrives once.
  const [, token = '', form = ''] =
    /name="token" value="([^"]+)"><input type="hidden" name="form" value="([^"]+)"/.exec(await web.look()) ??
    [];
  const message = {
    token,
    form,
    project: skipping['project'] ?? '',
    action: 'message',
    job: '1',
    text: 'Go on',
  };
  await Promise.all([web.submit(message), web.submit(message)]);
  while (!(await web.look()).includes('Message, sent')) await setTimeout(20);
  await web.submit(message);
  expect((await web.look()).match(/Message, /g)).toHaveLength(1);
});
