import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { cronProblem } from '../src/config/cron.js';
import { callCli } from './run-cli.js';
import { tempDir } from './temp-dir.js';

const ROOT = join(import.meta.dirname, '..');
const WORKSPACE = '/srv/readership';
const read = (file: string) => readFile(join(ROOT, file), 'utf8');

async function readPackage() {
  const schema = z.object({
    version: z.string(),
    engines: z.object({ node: z.string() }),
    bin: z.object({ readership: z.string() }),
    files: z.array(z.string()),
  });
  return schema.parse(JSON.parse(await read('package.json')));
}

const INVOCATION =
  /(?:\breadership\.js|\breadership(?::\d+\.\d+\.\d+)?) ((?!readership|node|https?:)[a-z][^|&;\n`]*)/g;
/** The arguments of each command in a text, such as `export --plan`. */
const invocations = (text: string): string[] =>
  [...text.matchAll(INVOCATION)].map(([, args = '']) => args.trim());

async function helpOf(...command: string[]): Promise<string> {
  const { code, stdout } = await callCli([...command, '--help'], { cwd: ROOT });
  expect(code, command.join(' ')).toBe(0);
  return stdout;
}

/** What a Dockerfile copies from the repository. */
const copiedBy = (dockerfile: string): string[] =>
  [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from = '']) => from.split(' '));

const noComments = (text: string): string => text.replaceAll(/^#.*\n/gm, '');

describe('the files of deploy/', () => {
  it('are all in docs/operations.md, and use only existing commands and options', async () => {
    const operations = await read('docs/operations.md');
    const texts: string[] = [];
    for (const file of await readdir(join(ROOT, 'deploy'))) {
      expect(operations).toContain(`(../deploy/${file})`);
      texts.push(noComments(await read(`deploy/${file}`)));
    }
    const found = texts.flatMap(invocations);
    expect(found).toEqual(expect.arrayContaining(['start', 'run 2>']));
    const commands = await helpOf();
    const used = new Map<string, string[]>();
    for (const invocation of found) {
      const [command = '', ...args] = invocation.split(/\s+/);
      expect(commands).toMatch(new RegExp(`^ {2}${command} `, 'm'));
      const name = command === 'jobs' ? `${command} ${args[0] ?? ''}` : command;
      const options = args.filter((arg) => arg.startsWith('--'));
      if (options.length > 0) used.set(name, [...(used.get(name) ?? []), ...options]);
    }
    const check = async ([command, options]: readonly [string, readonly string[]]) => {
      const help = await helpOf(...command.split(' '));
      for (const option of options) expect(help, command).toContain(option);
    };
    await Promise.all([...used].map(check));
  });

  it('use the right paths and the current version', async () => {
    const { version, bin } = await readPackage();
    expect(await read('deploy/Dockerfile')).toContain(join('/opt/readership', bin.readership));
    // Where `npm install --global --prefix /usr/local` puts the command.
    expect(await read('deploy/readership.service')).toContain('ExecStart=/usr/local/bin/readership start');
    expect(await read('deploy/crontab')).toContain('PATH=/usr/local/bin:$PATH readership run');
    const naming = ['deploy/Dockerfile', 'deploy/cronjob.yaml', 'deploy/compose.yaml'];
    for (const file of [...naming, 'docs/operations.md'])
      for (const [, tag] of (await read(file)).matchAll(/readership:(\d[\w.]*)/g))
        expect(tag, file).toBe(version);
  });
});

describe('deploy/Dockerfile', () => {
  it('builds existing files on a Node version that package.json allows and CI tests', async () => {
    const dockerfile = noComments(await read('deploy/Dockerfile'));
    const { engines, files } = await readPackage();
    const ci = await read('.github/workflows/ci.yml');
    const [, least = ''] = /^>=(\d+)/.exec(engines.node) ?? [];
    const [, tested = ''] = /node: \[(.+)\]/.exec(ci) ?? [];
    const images = [...dockerfile.matchAll(/^FROM node:(\d+)-\S+-slim/gm)].map(([, major]) => Number(major));
    expect(images).toHaveLength([...dockerfile.matchAll(/^FROM /gm)].length);
    for (const major of images) {
      expect(major).toBeGreaterThan(Number(least));
      expect(tested.split(', ')).toContain(String(major));
    }
    const copied = copiedBy(dockerfile);
    for (const path of copied) expect(existsSync(join(ROOT, path)), path).toBe(true);
    // The web app and AI assistants need these.
    expect(copied).toEqual(expect.arrayContaining(['docs/data.md', 'docs/questions.md']));
    const shipped = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
    const needed = files.filter((name) => !/^!|\.md$|^(docs|deploy)$/.test(name));
    for (const path of ['node_modules', 'package.json', ...needed])
      expect(shipped).toMatch(new RegExp(`^COPY .*\\b${path.replace('.', '\\.')} `, 'm'));
  });

  it('runs in the workspace, not as root, and receives the signal that stops it', async () => {
    const dockerfile = await read('deploy/Dockerfile');
    expect(dockerfile).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    expect(dockerfile.lastIndexOf('\nUSER ')).toBeGreaterThan(dockerfile.lastIndexOf('\nRUN '));
    expect(dockerfile.lastIndexOf(`\nWORKDIR ${WORKSPACE}\n`)).toBe(dockerfile.lastIndexOf('\nWORKDIR '));
    // As a list, because a shell would receive the signal instead.
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", /m);
    expect(dockerfile).toMatch(/^CMD \["start"\]$/m);
  });
});

/** The documents of a manifest, which must have no errors. */
async function manifest(file: string) {
  const documents = parseAllDocuments(await read(file), { strict: true });
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  return documents.map((document) => document.toJS() as unknown);
}

const MACHINE = { name: 'READERSHIP_MACHINE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } };

it('deploy/cronjob.yaml runs the image, one run at a time, as its user, with the workspace mounted', async () => {
  const [claim, job] = await manifest('deploy/cronjob.yaml');
  const [, uid = '', gid = ''] = /^USER (\d+):(\d+)$/m.exec(await read('deploy/Dockerfile')) ?? [];
  expect(claim).toMatchObject({ kind: 'PersistentVolumeClaim', metadata: { name: 'readership' } });
  const container = {
    args: ['run', '--paused-ok'],
    env: [MACHINE],
    volumeMounts: [{ mountPath: `${WORKSPACE}/data` }, { mountPath: `${WORKSPACE}/readership.yaml` }],
  };
  const securityContext = { runAsNonRoot: true, runAsUser: Number(uid), fsGroup: Number(gid) };
  const pod = { restartPolicy: 'Never', securityContext, containers: [container] };
  expect(job).toMatchObject({
    kind: 'CronJob',
    spec: {
      concurrencyPolicy: 'Forbid',
      jobTemplate: { spec: { backoffLimit: 0, template: { spec: pod } } },
    },
  });
  const { schedule } = z.object({ spec: z.object({ schedule: z.string() }) }).parse(job).spec;
  expect(cronProblem(schedule)).toBeUndefined();
});

it('.dockerignore admits only what the Dockerfile copies', async () => {
  const copied = new Set(copiedBy(await read('deploy/Dockerfile')));
  const [first, ...allowed] = noComments(await read('.dockerignore'))
    .trim()
    .split('\n');
  expect(first).toBe('*');
  expect(allowed.sort()).toEqual([...copied].map((path) => `!${path}`).sort());
});

it('deploy/crontab runs once an hour, with private files', async () => {
  const [line = '', ...more] = noComments(await read('deploy/crontab'))
    .trim()
    .split('\n');
  expect(more).toEqual([]);
  const [, schedule = '', command = ''] = /^((?:\S+ ){4}\S+) {2}(.+)$/.exec(line) ?? [];
  expect(cronProblem(schedule), schedule).toBeUndefined();
  expect(command).toMatch(/^cd \/srv\/readership && umask 077 && /);
  // In a crontab, a percent sign ends the command.
  expect(command).not.toContain('%');
});

const shellcheck = ['/usr/bin/shellcheck', '/usr/local/bin/shellcheck'].find((path) => existsSync(path));

it.skipIf(shellcheck === undefined)('the shell script passes shellcheck (skipped without it)', async () => {
  const check = promisify(execFile)(shellcheck ?? '', ['--shell=bash', '.ci/run'], { cwd: ROOT });
  expect(await check.catch((error: unknown) => ({ stdout: String(error) }))).toMatchObject({ stdout: '' });
});

const systemdAnalyze = ['/usr/bin/systemd-analyze', '/bin/systemd-analyze'].find((path) => existsSync(path));

describe('deploy/readership.service', () => {
  it('is the same for several workspaces, each in its own directory', async () => {
    const settings = async (file: string) => (await read(file)).replace(/^#.*\n/gm, '');
    const one = await settings('deploy/readership.service');
    const each = one
      .replace('of a documentation site', 'of %i')
      .replace(`WorkingDirectory=${WORKSPACE}`, `WorkingDirectory=${WORKSPACE}/%i`)
      .replace(`ReadWritePaths=${WORKSPACE}`, `ReadWritePaths=${WORKSPACE}/%i -/srv/dataset`);
    expect(await settings('deploy/readership@.service')).toBe(each);
  });

  it.skipIf(systemdAnalyze === undefined).each(['readership.service', 'readership@.service'])(
    '%s passes systemd-analyze',
    async (name) => {
      // The command is not installed here.
      const file = join(await tempDir(), name);
      await writeFile(file, (await read(`deploy/${name}`)).replace('/usr/local/bin/readership', '/bin/true'));
      const { stderr } = await promisify(execFile)(systemdAnalyze ?? '', ['verify', file]).catch(
        (error: unknown) => ({ stderr: String(error) }),
      );
      expect(stderr.split('\n').filter((line) => line.includes('readership'))).toEqual([]);
    },
  );
});
