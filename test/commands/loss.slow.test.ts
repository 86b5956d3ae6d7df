import { copyFileSync, existsSync } from 'node:fs';
import { appendFile, copyFile, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createState } from '../../src/state/open.js';
import { writeWitness } from '../../src/state/witness.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { readBooks } from '../torture/books.js';
import { openSite, type Site } from './site.js';
import { daysAgo, endedWith, keep, putBack, replaceIn } from './workspace.js';

// What is lost or rolled back, and what happens then: nothing is sent again. What a killed process leaves, full disks
// and several workers are in sending.slow.test.ts; copies of a workspace, in copies.slow.test.ts.

const QUIET = 'improve: { mode: plan }\n';
const ACTIVE = `improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 2 }
mail: { from: docs@example.com }
reports: { weekly: { to: [known@example.com, unknown@example.com] } }
`;
/** The last attempt, whose reply is lost. */
const MESSAGE = ['jobs', 'message', '1', 'Mention the rate limits.'];
const NEW_EMAIL = ['report', 'send', 'weekly', '--to', 'new@example.com'];
/** They would send what was sent before, if the state did not know that. */
const SENDING = [['run'], ['improve', '--apply'], ['report', 'send', 'weekly'], NEW_EMAIL];

let site: Site;
let data: string;
let witness: string;
/** The workspace before anything was sent, before the last attempt, and after it; and that of another workspace. */
const saved = { before: '', lastBut1: '', after: '', other: '' };

const stateOf = (directory: string): string => join(directory, 'data', 'state.db');
const witnessIn = (directory: string): string => join(directory, '.readership.yaml.sent');
const state = (): string => stateOf(site.cwd);

/** What has reached the platform and the mail server. */
const sent = () => ({
  jobs: site.sandbox.inspect().jobs.map(({ prompt, messages }) => ({ prompt, messages: messages.length })),
  emails: [...site.mailServer.accepted].map(([recipient, emails]) => [recipient, emails.length]).sort(),
});

beforeAll(async () => {
  site = await openSite({ firstDay: daysAgo(45), pages: 30, jobSeconds: 3600 }, QUIET);
  data = join(site.cwd, 'data');
  witness = witnessIn(site.cwd);
  endedWith(0, await site.run('export'));
  expect(existsSync(witness)).toBe(false);
  await replaceIn(site.cwd, QUIET, ACTIVE);
  saved.before = await keep(site.cwd);
  site.sandbox.setFaults([{ on: 'create', kind: 'lost-reply', after: 1, times: 1 }]);
  site.mailServer.behaviors.set('unknown@example.com', [{ on: 'data', do: 'drop-accepted' }]);
  endedWith(1, await site.run('run'));
  saved.lastBut1 = await keep(site.cwd);
  site.sandbox.setFaults([{ on: 'message', kind: 'lost-reply', times: 1 }]);
  endedWith(1, await site.run(...MESSAGE));
  site.sandbox.setFaults([]);
  saved.after = await keep(site.cwd);
  expect(sent()).toMatchObject({
    jobs: [{ messages: 1 }, { messages: 0 }],
    emails: [
      ['known@example.com', 1],
      ['unknown@example.com', 1],
    ],
  });
  saved.other = await tempDir();
  const other = await createState(join(saved.other, 'data'), { machine: 'm', host: 'h', path: saved.other });
  writeWitness(witnessIn(saved.other), { workspace: readWorkspaceRow(other).id, attempt: 3 });
  other.close();
});
beforeEach(() => putBack(site.cwd, saved.after));

const witnessed = async (): Promise<string> => readFile(witness, 'utf8').catch(() => '');

/** Checks that these commands are refused, send nothing, and leave the witness alone. */
async function expectRefused(refusal: RegExp, commands: readonly string[][]): Promise<void> {
  const [before, last] = [sent(), await witnessed()];
  for (const args of commands) {
    const { code, stdout, stderr } = await site.run(...args);
    expect({ args, code }, stderr).toEqual({ args, code: 1 });
    expect(stdout + stderr, args.join(' ')).toMatch(refusal);
    expect(sent(), args.join(' ')).toEqual(before);
  }
  expect(await witnessed()).toBe(last);
}

/** Checks that the workspace goes on, sends nothing again, and names everything whose outcome is unknown. */
async function expectGoesOn(): Promise<void> {
  const before = sent();
  for (const args of [['run'], ['status']]) {
    const { stdout, stderr } = await site.run(...args);
    for (const words of [
      /job 2 \(.+may or may not/,
      /message 1 to job 1 may or may not/,
      /unknown@example\.com/,
    ])
      expect(stdout + stderr, args.join(' ')).toMatch(words);
  }
  endedWith(2, await site.run(...MESSAGE));
  expect(sent()).toEqual(before);
}

/** What a state knows of what was sent. */
async function sendingsIn(directory: string) {
  const { workspace, jobs, messages, emails } =
    (await readBooks(join(directory, 'data'))) ?? expect.fail('there is no state');
  return { workspace, jobs, messages, emails };
}

interface Loss {
  readonly what: string;
  readonly lose: () => Promise<unknown>;
  readonly refusal: RegExp;
  readonly refused?: readonly string[][];
}

const OLDER = /older than the history: .+readership restore$/m;

describe('the state is restored from the history, which has carried it since the last attempt, if it', () => {
  it.each<Loss>([
    { what: 'is gone', lose: () => rm(state()), refusal: /The state .+ is missing.+readership restore/s },
    {
      what: 'is older by one attempt',
      lose: () => copyFile(stateOf(saved.lastBut1), state()),
      refusal: OLDER,
      refused: [MESSAGE, NEW_EMAIL],
    },
    {
      what: 'knows nothing of what was sent',
      lose: () => copyFile(stateOf(saved.before), state()),
      refusal: /is older than the history.+readership restore$/ms,
      refused: SENDING,
    },
    {
      what: 'belongs to another workspace',
      lose: () => copyFile(stateOf(saved.other), state()),
      refusal: /belongs to another workspace than/,
    },
    {
      what: 'is no SQLite file',
      lose: () => writeFile(state(), 'no header, no magic bytes'.repeat(500)),
      refusal: /is damaged.+: readership restore/,
    },
    {
      what: 'was cut off',
      lose: async () => writeFile(state(), (await readFile(state())).subarray(0, 9_000)),
      refusal: /is damaged.+: readership restore/,
    },
  ])('$what', async ({ lose, refusal, refused = [['run'], NEW_EMAIL] }) => {
    await lose();
    await expectRefused(refusal, refused);
    const { stdout } = endedWith(0, await site.run('restore'));
    expect(stdout).toMatch(/Restored data\/state\.db: jobs, emails and decisions\./);
    expect(await sendingsIn(site.cwd)).toEqual(await sendingsIn(saved.after));
  });
});

it('if state and history are older than the witness, `adopt` names the attempts between, and it sends again', async () => {
  await putBack(site.cwd, saved.before);
  await copyFile(witnessIn(saved.after), witness);
  await expectRefused(/older than what this workspace has sent.+readership adopt$/ms, SENDING);
  expect((await site.run('status')).stdout).toMatch(/older than what this workspace has sent/);
  const { stdout } = endedWith(0, await site.run('adopt'));
  expect(stdout).toMatch(/^Attempts 1 to 5 to send something: unknown\..+improve --skip PAGE$/m);
  const { jobs } = sent();
  endedWith(0, await site.run('improve', '--apply'));
  expect(sent().jobs.length).toBe(jobs.length + 2);
});

it('if the history carries a newer state, `adopt` is refused: `restore` brings it back', async () => {
  await copyFile(stateOf(saved.before), state());
  expect(endedWith(1, await site.run('adopt')).stderr).toMatch(
    /older than the history.+readership restore$/ms,
  );
  endedWith(0, await site.run('restore'));
  await expectGoesOn();
});

describe('with all of data/ lost,', () => {
  it.each(['missing', 'an empty mount point'])('nothing is sent while it is %s', async (what) => {
    await rm(data, { recursive: true });
    if (what !== 'missing') await mkdir(data);
    const refusal = /has no state, although this workspace has sent jobs or emails.+restore --from/s;
    await expectRefused(refusal, [...SENDING, ['export'], ['sql', 'FROM jobs'], ['status'], ['doctor']]);
    expect(existsSync(join(data, 'history.duckdb'))).toBe(false);
    endedWith(0, await site.run('restore', '--from', join(saved.after, 'data', 'history.duckdb')));
    expect(await sendingsIn(site.cwd)).toEqual(await sendingsIn(saved.after));
  });

  it('a running service stops, also when another directory is in its place', async () => {
    const schedule = '\nschedule: { export: "* * * * *", poll: "* * * * *" }\n';
    await appendFile(join(site.cwd, 'readership.yaml'), schedule);
    const before = sent();
    const service = startCli(['start'], { cwd: site.cwd, env: site.env });
    await service.until(/"step":"export","outcome":"done"/);
    await rename(data, `${data}.away`);
    await cp(`${data}.away`, data, { recursive: true });
    await rm(`${data}.away`, { recursive: true });
    const { code, stderr, stdout } = await service.result;
    expect(code).toBe(1);
    expect(stderr + stdout).toMatch(/The data directory .+ is another one now/);
    expect(sent()).toEqual(before);
    await replaceIn(site.cwd, schedule, '');
  });

  it('and the witness as well, nobody knows that anything was sent: it starts over', async () => {
    const { jobs } = sent();
    await rm(data, { recursive: true });
    await rm(witness);
    for (const args of [['export'], ['improve', '--apply']]) endedWith(0, await site.run(...args));
    expect(sent().jobs.length).toBe(jobs.length + 2);
  });
});

describe('the witness', () => {
  it('that is gone is written again with the next attempt', async () => {
    await rm(witness);
    await expectGoesOn();
    expect(existsSync(witness)).toBe(false);
    endedWith(0, await site.run(...NEW_EMAIL));
    expect(JSON.parse((await witnessed()).split('\n', 1)[0] ?? '')).toMatchObject({ attempt: 6 });
  });

  it.each([
    ['of another workspace', () => copyFile(witnessIn(saved.other), witness), /belongs to another workspace/],
    ['that is damaged', () => writeFile(witness, '{"workspace":'), /Restore that file from a backup/],
    ['that cannot be read', async () => rm(witness).then(() => mkdir(witness)), /Cannot read .+\.sent/],
  ])('%s stops everything that sends', async (_, replace, refusal) => {
    await replace();
    await expectRefused(refusal, [NEW_EMAIL, ['improve', '--apply']]);
  });
});

it('copies of the state that are taken while it is in use send nothing again', async () => {
  await putBack(site.cwd, saved.before);
  const copies = await tempDir();
  let count = 0;
  const copy = () => {
    copyFileSync(state(), join(copies, String(count++)));
  };
  site.mailServer.onEvent = copy;
  const taking = setInterval(copy, 20);
  await startCli(['run'], { cwd: site.cwd, env: site.env }).result;
  clearInterval(taking);
  site.mailServer.onEvent = () => undefined;
  const complete = await keep(site.cwd);
  const before = sent();
  const names = await readdir(copies);
  expect(names.length).toBeGreaterThan(5);
  const every = Math.ceil(names.length / (process.env['CI'] === undefined ? 30 : 4));
  for (const name of names.filter((_, index) => index % every === 0)) {
    await putBack(site.cwd, complete);
    await copyFile(join(copies, name), state());
    for (const args of [
      ['improve', '--apply'],
      ['report', 'send', 'weekly'],
    ])
      await site.run(...args);
    expect(sent(), `copy ${name} of ${names.length}`).toEqual(before);
  }
});
