import { addMinutes } from 'date-fns';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { planJob } from '../../src/agents/jobs.js';
import { callCli } from '../run-cli.js';
import { openTestState } from '../open-state.js';
import { reply, serve } from '../serve.js';
import { agentSite } from './agent-site.js';
import { jobFor, steadyPages } from './reading.js';

it('prompts that were not sent are counted by project, and every command gives the same time', async () => {
  const platform = await serve((_, response) =>
    reply(response, 429, { error: 'busy' }, { 'retry-after': '90' }),
  );
  const prj_1 = { baseUrl: platform.baseUrl, projectId: 'prj_1', apiKey: 'admin_key' };
  const site = await agentSite(prj_1, steadyPages(2), '{ mode: apply }');
  const file = join(site.cwd, 'readership.yaml');
  const config = await readFile(file, 'utf8');
  await writeFile(file, config.replace('name: Acme Docs }', 'name: Acme Docs }, { id: prj_2 }'));
  const { state, close } = await openTestState(dirname(site.historyFile));
  await state.transaction(() => planJob(state, jobFor('/other', new Date(), { project: 'prj_2' })));
  await close();
  const run = (...args: string[]) => callCli(args, site);

  await run('improve', '--apply');
  const { stderr: listed } = await run('jobs', 'list');
  const [, time] = /^Acme Docs: 2 prompts planned: .+ can be sent from (.+ UTC)\n/.exec(listed) ?? [];
  const again = await run('improve', '--apply', '--project', 'prj_1');
  expect(again.stdout).toMatch(
    /^Acme Docs: no new job: 2 jobs already planned for the week of \w{3} \d+, \d{4}\n$/,
  );
  expect(again.stderr).toContain(
    `2 prompts not sent yet: the platform requested a pause. The next can be sent from ${time}.`,
  );
  const ended = await run('jobs', 'settle', '2', '--ended');
  expect(ended.stderr).toBe('Job 2 is never sent. Its page may be flagged again.\n');
  await writeFile(file, config.replaceAll('prj_1', 'prj_2'));
  for (const [name, ...text] of [['show'], ['message', 'Go on'], ['settle', '--closed']] as const) {
    const removed = await run('jobs', name, '2', ...text);
    expect([removed.code, removed.stderr]).toEqual([2, expect.stringContaining('Job 2 belongs to prj_1')]);
  }
});

it('a message that waits or that cannot be sent says what to do', async () => {
  let isBusy = true;
  const platform = await serve(({ method, url }, response) => {
    if (method === 'GET') return reply(response, 200, { id: 'job_1', status: 'completed' });
    if (url.pathname.endsWith('/message')) return reply(response, isBusy ? 429 : 500, {});
    const posts = platform.seen.filter((request) => request.method === 'POST');
    return reply(response, posts.length === 1 ? 201 : 500, { id: 'job_1' });
  });
  const prj_1 = { baseUrl: platform.baseUrl, projectId: 'prj_1', apiKey: 'admin_key' };
  const site = await agentSite(prj_1, steadyPages(2), '{ mode: apply }');
  await callCli(['improve', '--apply'], site);
  const later = { ...site, now: () => addMinutes(new Date(), 11) };
  const told = async (id: string, text: string, at: typeof site = site) =>
    (await callCli(['jobs', 'message', id, text], at)).stderr;
  expect(await told('2', 'Go on')).toContain(
    'Job 2 may or may not have been created, and its ID on the platform is not known. See readership jobs show 2; if you find it there: readership jobs settle 2 --sent REMOTE_ID',
  );
  expect(await told('1', 'Go on')).toContain('the server answered 429');
  expect(await told('1', 'Another')).toContain(
    'Job 1 has a message that was not sent yet. Send that first: readership jobs poll, or end it: readership jobs settle 1 --ended',
  );
  await callCli(['jobs', 'settle', '1', '--ended'], site);
  isBusy = false;
  expect(await told('1', 'Go on', later)).toContain(
    'If the message arrived: readership jobs settle 1 --sent; if not: --not-sent',
  );
  expect(await told('1', 'Another', later)).toContain(
    'a message that may or may not have arrived. Record its outcome first: readership jobs settle 1 --sent, or --not-sent',
  );
  // Until they are settled.
  for (let times = 0; times < 2; times++)
    for (const command of ['run', 'status']) {
      const { stdout, stderr } = await callCli([command], later);
      for (const what of ['job 2 (/guides/page-2)', 'message 2 to job 1'])
        expect(stdout + stderr, command).toContain(`${what} may or may not`);
    }
});
