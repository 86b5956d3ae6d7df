import { addMinutes, subDays } from 'date-fns';
import { describe, expect, it } from 'vitest';
import { possiblePaths } from '../../src/agents/code-host.js';
import { changeJob, type Job, planJob, referenceOf } from '../../src/agents/ledger.js';
import { planImprovement } from '../../src/agents/plan.js';
import { composePrompt } from '../../src/agents/prompt.js';
import { readPullRequests, recordChange } from '../../src/agents/pull-requests.js';
import { settingsSchema } from '../../src/config/schema.js';
import { improveStep, recordPageChanges } from '../../src/steps/improve.js';
import { day } from '../../src/day.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { execute, rowsOf, valuesOf } from '../open-warehouse.js';
import { reply, serve } from '../serve.js';
import { stepContext } from '../steps/step-context.js';
import { DEPARTURE } from '../departure.js';
import { jobToChange, settleJob } from '../../src/steps/job-changes.js';
import { agentDesk } from './agent-desk.js';
import { openCodeHost } from './open-code-host.js';
import { EVIDENCE, steadyPages, storeReading } from './reading.js';

/** A pull request of the fake repository acme/docs. */
interface Fake {
  readonly number: number;
  readonly text?: string;
  readonly files?: readonly string[];
  readonly updated: Date;
  readonly created?: Date;
  readonly merged?: Date;
  readonly closed?: Date;
}

type Kind = 'github' | 'gitlab' | 'bitbucket';

const linkOf = (kind: Kind, number: number) =>
  `https://code.example.com/acme/docs/${{ github: 'pull', gitlab: '-/merge_requests', bitbucket: 'pull-requests' }[kind]}/${number}`;

/** What each kind of host answers about pull requests, as its documentation shows. */
const LISTED: Readonly<Record<Kind, (pull: Fake) => object>> = {
  github: ({ number, text = '', updated, created = updated, merged, closed }) => ({
    ...{ number, title: 'Title', body: text, created_at: created, updated_at: updated },
    ...{ html_url: linkOf('github', number), state: (merged ?? closed) ? 'closed' : 'open' },
    closed_at: merged ?? closed ?? null,
    pull_request: { merged_at: merged ?? null },
  }),
  gitlab: ({ number, text = '', updated, created = updated, merged, closed }) => ({
    ...{ iid: number, title: 'Title', description: text, created_at: created, updated_at: updated },
    ...{ web_url: linkOf('gitlab', number), merged_at: merged ?? null, closed_at: closed ?? null },
    state: merged ? 'merged' : closed ? 'closed' : 'opened',
  }),
  bitbucket: ({ number, text = '', updated, created = updated, merged, closed }) => ({
    ...{ id: number, title: 'Title', description: text, created_on: created },
    updated_on: merged ?? closed ?? updated,
    links: { html: { href: linkOf('bitbucket', number) } },
    state: merged ? 'MERGED' : closed ? 'DECLINED' : 'OPEN',
  }),
};

/** A code host with these pull requests, and a workspace that reads them. */
async function repository(pulls: Fake[], kind: Kind = 'github', mostRequests = Infinity) {
  const desk = await agentDesk();
  await storeReading(desk.warehouse, steadyPages(8), { project: desk.project });
  const wrapped = (values: unknown) => (kind === 'bitbucket' ? { values } : values);
  const server = await serve(({ url }, response, count) => {
    if (count > mostRequests) {
      reply(response, 429, {});
      return;
    }
    const [, of] =
      /\/(?:pulls|merge_requests|pullrequests)\/(\d+)\/(?:files|diffs|diffstat)$/.exec(url.pathname) ?? [];
    const pull = pulls.find(({ number }) => String(number) === of);
    if (of !== undefined) {
      const names = pull?.files ?? [];
      const files = {
        github: names.map((filename) => ({ filename })),
        gitlab: names.map((path) => ({ old_path: path, new_path: path })),
        bitbucket: names.map((path) => ({ old: null, new: { path } })),
      }[kind];
      reply(response, 200, wrapped(files));
      return;
    }
    const { searchParams: given } = url;
    const since = given.get('since') ?? given.get('updated_after') ?? given.get('q')?.split(' >= ')[1] ?? '';
    const found = pulls
      .filter(({ updated }) => updated >= new Date(since))
      .sort((one, other) => one.updated.getTime() - other.updated.getTime());
    const issue = { ...LISTED.github({ number: 9999, updated: subDays(NOW, 80) }), pull_request: undefined };
    const issues = kind === 'github' && new Date(since) < subDays(NOW, 80) ? [issue] : [];
    const list = [...issues, ...found.map(LISTED[kind])];
    reply(response, 200, wrapped(list.slice(0, kind === 'bitbucket' ? 50 : 100)));
  });
  const { baseUrl: apiUrl } = server;
  const codeHost = openCodeHost(
    { host: kind, url: 'https://code.example.com', repository: 'acme/docs' },
    { apiUrl, now: desk.clock.now },
  );
  const { clock, journal } = desk;
  const read = (minutes = 0) => {
    clock.advance(60 * minutes);
    const task = { warehouse: desk.warehouse, journal, codeHost, now: clock.now };
    return readPullRequests({ ...task, projects: [{ id: desk.project }] });
  };
  const changes = () =>
    rowsOf(desk.warehouse, 'SELECT path, link, changed_on AS day FROM page_changes ORDER BY ALL');
  return { ...desk, codeHost, read, changes, server };
}

describe('the source file of a page', () => {
  it.each([
    ['docs/guides/page-1.mdx', undefined, '/guides/page-1'],
    ['guides/page-1/index.md', undefined, '/guides/page-1'],
    ['docs/guides/page-1/README.md', undefined, '/guides/page-1'],
    ['index.md', undefined, '/'],
    ['docs/guides/page-1.png', undefined, undefined],
    ['src/guides/page-1.ts', undefined, undefined],
    ['site/guides/page-1.md', 'docs{path}.md', undefined],
    ['docs/guides/page-1.md', 'docs{path}.md', '/guides/page-1'],
    ['en/v2/guides/page-1/page.mdx', 'en/*{path}/page.{md,mdx}', '/guides/page-1'],
    ['docs/v1.2/(a)/page-1.md', 'docs/v1.2/(a){path}.md', '/page-1'],
  ])('%s with the pattern %s is %s', (file, pattern, path) => {
    const { settings } = openCodeHost({ host: 'github', ...(pattern !== undefined && { files: pattern }) });
    const pages = ['/guides/page-1', '/page-1', '/'];
    expect(possiblePaths(file, settings.files).find((one) => pages.includes(one))).toBe(path);
  });

  const WRONG = ['docs.md', '{path}{path}', '{path', 'docs{path}.{md', '{path}.{(a+)+}'];
  it.each(WRONG)('has no pattern %s', (files) => {
    expect(() => openCodeHost({ host: 'github', files })).toThrow(/"pullRequests",\s+"files"/);
  });
});

describe.each(['github', 'gitlab', 'bitbucket'] as const)('changes by others, at %s', (kind) => {
  it('keep their pages from getting a job while they are open, and are known once they are merged', async () => {
    const open: Fake = { number: 1, files: ['docs/guides/page-1.md', 'logo.png'], updated: subDays(NOW, 2) };
    const pulls = [
      open,
      { number: 2, files: ['docs/guides/page-2.md'], updated: subDays(NOW, 3), merged: subDays(NOW, 3) },
      { number: 3, files: ['docs/guides/page-3.md'], updated: subDays(NOW, 4), closed: subDays(NOW, 4) },
      { number: 4, files: ['docs/guides/page-4.md'], updated: subDays(NOW, 100) },
      { number: 5, files: ['docs/guides/page-5.md'], updated: subDays(NOW, 1) },
    ];
    const desk = await repository(pulls, kind);
    const { read, changes, warehouse, project, clock, server } = desk;
    // The platform links to a part of our own.
    await desk.plan(1);
    const own = `UPDATE agent_jobs SET pr_link = '${linkOf(kind, 5)}/?tab=files'`;
    await execute(warehouse, own);
    expect(await read()).toEqual({ settled: [] });
    expect(await changes()).toEqual([
      { path: '/guides/page-1', link: linkOf(kind, 1), day: null },
      { path: '/guides/page-2', link: linkOf(kind, 2), day: '2026-11-15' },
    ]);
    const { improve } = settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: project }] });
    const around = { now: clock.now(), isListed: undefined };
    const plan = await planImprovement(warehouse, project, improve, around);
    const taken = plan.leftOut.filter(({ why }) => why.code === 'changed-elsewhere');
    expect(taken).toMatchObject([{ path: '/guides/page-1', why: { link: linkOf(kind, 1) } }]);
    const asked = server.seen.length;
    await read(59);
    expect(server.seen).toHaveLength(asked);
    // A clock that was ahead recorded that everything is read until next year.
    const ahead = "UPDATE code_host_reads SET next_read_at = '2027-12-24', read_until = '2027-12-24'";
    await execute(warehouse, ahead);
    pulls[0] = { ...open, updated: addMinutes(NOW, 30), closed: addMinutes(NOW, 30) };
    await read(1);
    // Nobody recorded this one, so nobody can take it back.
    await recordChange(warehouse, { project, path: '/guides/page-2', changed_on: day('2026-11-15') }, true);
    expect((await changes()).map(({ path }) => path)).toEqual(['/guides/page-2']);
  });

  it('are all read if several were made at the moment at which a page or a round ends', async () => {
    const pulls = Array.from({ length: 130 }, (_, index) => ({
      number: index + 1,
      files: [`docs/guides/page-${(index % 8) + 1}.md`],
      updated: addMinutes(subDays(NOW, 3), Math.floor(index / 3)),
    }));
    const { codeHost, read, changes } = await repository(pulls, kind);
    const listed: number[] = [];
    for await (const { pullRequests } of codeHost.changedSince(subDays(NOW, 5)))
      listed.push(...pullRequests.map(({ number }) => number));
    expect(listed).toEqual(pulls.map(({ number }) => number));
    for (let round = 0; round < 8; round++) await read(10);
    expect(await changes()).toHaveLength(130);
  });
});

it('a change that a person records is stored once, measured like the job of an agent, and can be taken back', async () => {
  const { warehouse, changes, project } = await repository([]);
  const context = stepContext(warehouse, { settings: { projects: [{ id: project }] } });
  const [only = expect.fail('no project')] = context.projects;
  const record = (path: string, on: string, isUndone = false) =>
    recordPageChanges(context, only, [path], { day: day(on), isUndone });
  await record('/guides/page-1', '2026-11-12');
  await record('/guides/page-1', '2026-11-12');
  expect(await changes()).toEqual([{ path: '/guides/page-1', link: null, day: '2026-11-12' }]);
  const effects = () =>
    rowsOf(warehouse, 'SELECT DISTINCT job, path, merged_on AS day, weeks_before FROM job_effects');
  expect(await effects()).toEqual([{ job: -1, path: '/guides/page-1', day: '2026-11-12', weeks_before: 4 }]);
  await expect(record('/guides/pge-1', '2026-11-12')).rejects.toThrow('did you mean /guides/page-1');
  await expect(record('/guides/page-1', '2026-11-19')).rejects.toThrow('cannot have changed on 2026-11-19');
  await record('/guides/page-1', '2026-11-12', true);
  expect(await changes()).toEqual([]);
  expect((await improveStep(context, false)).detail[0]?.plan.flagged).toHaveLength(5);
});

it('a code host that refuses does not fail the step, and is asked again an hour later', async () => {
  const { read, server, warehouse } = await repository([]);
  await server.close();
  expect((await read()).problem).toMatch(/^Could not list the pull requests: /);
  const [stored] = await valuesOf(warehouse, 'SELECT problem FROM code_host_reads');
  expect(stored).toMatch(/^Could not list the pull requests: /);
});

it('a lost job that was settled is reported although the code host then wants no more requests', async () => {
  const pulls: Fake[] = [];
  const desk = await repository(pulls, 'github', 2);
  const { warehouse, project, read, job } = desk;
  await desk.plan(1);
  const { path, reference } = await job(1);
  const change = { now: NOW, cause: '' };
  const sent = await changeJob(warehouse, await job(1), { event: 'submit', ...change });
  await changeJob(warehouse, sent, { event: 'unknown', ...change });
  const text = `Readership reference ${reference}, project "${project}", page "${path}"`;
  pulls.push({ number: 1, text, files: [], updated: addMinutes(NOW, 1) });
  const { settled, problem } = await read(5);
  expect(settled.map(({ id, state }) => [id, state])).toEqual([[1, 'completed']]);
  expect(problem).toMatch('429');
  // A person who finds its id can send it messages.
  const { id } = await desk.client.createJob('Improve', DEPARTURE);
  const settle = async (finding: Parameters<typeof settleJob>[1]) =>
    settleJob(await jobToChange(desk.context(), 1), finding);
  await settle({ created: id });
  expect(await job(1)).toMatchObject({ state: 'active', remote_id: id, pr_link: linkOf('github', 1) });
  await settle('ended');
  expect(await job(1)).toMatchObject({ state: 'completed', next_poll_at: null });
});

const LOST = Number(process.env['LOST_REPLIES'] ?? 500);

it(`of ${LOST} lost replies, those with a pull request settle themselves, none wrongly, and none twice`, async () => {
  const pulls: Fake[] = [];
  const { warehouse, project, read, jobs, journal } = await repository(pulls);
  const page = (number: number) => `/lost/page-${number}`;
  await warehouse.exclusive((connection) =>
    connection.run(
      `INSERT INTO page_views SELECT '${project}', '2026-11-15', '/lost/page-' || n, '/lost/page-' || n, 1, 1, 2 FROM range(${LOST}) AS numbers (n)`,
    ),
  );
  const truth = new Map<string, number>();
  const planned: Parameters<typeof planJob>[1][] = [];
  for (let number = 0; number < LOST; number++) {
    const path = page(number);
    const now = addMinutes(NOW, -number);
    const reference = referenceOf(project, path, now);
    const place = { workspaceDir: undefined, settings: { improve: { maxPromptLength: 8000 } } };
    const prompt = composePrompt({ project, path, reason: 'much read', reference }, 'Improve it.', place);
    const line = prompt.trimEnd().split('\n').at(-1) ?? '';
    planned.push({ project, page: { path, reason: '', evidence: EVIDENCE }, prompt, now });
    const files = [`docs${path}.md`];
    const text = `I changed it.\n\n> ${line}`;
    const pull = { number: number + 1, files, updated: addMinutes(now, 20), text };
    if (number % 2 === 1) continue;
    // Of 50 pull requests, one each lacks the reference, names or changes another page, exists twice, or is older.
    const trap = number % 100;
    if (trap === 0) pulls.push({ ...pull, text: 'I forgot the reference' });
    else if (trap === 20) pulls.push({ ...pull, text: line.replace(path, page(number + 1)) });
    else if (trap === 40) pulls.push({ ...pull, files: [`docs${page(number + 1)}.md`] });
    else if (trap === 60) pulls.push(pull, { ...pull, number: number + 10_000 });
    else if (trap === 80) pulls.push({ ...pull, created: subDays(now, 3) });
    else truth.set(path, pull.number);
    if (truth.has(path)) pulls.push(pull);
  }
  await warehouse.transaction(async (transaction) => {
    for (const job of planned) await planJob(transaction, job);
  });
  const all = await jobs();
  await warehouse.transaction(async (transaction) => {
    for (const job of all) {
      const change = { now: job.planned_at, cause: '' };
      const sent = await changeJob(transaction, job, { event: 'submit', ...change });
      await changeJob(transaction, sent, { event: 'unknown', ...change });
    }
  });
  const settled: Job[] = [];
  for (let round = 0; round < LOST / 40 + 5; round++)
    settled.push(...(await read(round === 0 ? 0 : 60)).settled);
  expect(new Set(settled.map(({ id }) => id)).size).toBe(settled.length);
  const found = (await jobs()).filter(({ state }) => state === 'completed');
  for (const { path, pr_link } of found) expect(pr_link, path).toBe(linkOf('github', truth.get(path) ?? 0));
  expect(found).toHaveLength(truth.size);
  expect(found.length / (LOST / 2)).toBeGreaterThanOrEqual(0.9);
  const [one] = found;
  expect(one?.remote_id).toBeNull();
  expect(journal.known('job').get(one?.reference ?? '')?.last).toMatchObject({
    event: 'sent',
    prLink: one?.pr_link,
  });
});
