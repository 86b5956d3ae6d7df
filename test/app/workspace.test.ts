import { execFile } from 'node:child_process';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { secretNames, withoutSecrets } from '../../src/app/secrets.js';
import { withoutDirectories, readWorkspace } from '../../src/app/workspace.js';
import { redactor } from '../../src/redact.js';
import { runtimeIn } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

const CONFIGURATION = 'baseUrl: https://platform.example.com\nprojects: [{ id: prj_1 }]\n';

async function workspaceDir(configuration: string) {
  const workingDirectory = await tempDir();
  await writeFile(join(workingDirectory, 'readership.yaml'), configuration);
  const { runtime, err } = runtimeIn(workingDirectory);
  return { runtime, err, dotEnv: join(workingDirectory, '.env') };
}

it('keeps every variable of its own secret, except the name of the machine', () => {
  const environment = { READERSHIP_API_KEY: 'a', READERSHIP_MACHINE: 'acme/docs-site', HOME: '/root' };
  expect(secretNames(environment)).toEqual(['READERSHIP_API_KEY']);
});

it('shows nobody the address with which anyone could report a successful night', async () => {
  const { runtime, err } = await workspaceDir(
    `${CONFIGURATION}alerts: { pingUrl: 'https://ping.example.com/0123-4567-89ab' }\n`,
  );
  await readWorkspace({}, runtime);
  runtime.output.note('https://ping.example.com/0123-4567-89ab failed: GET /0123-4567-89ab/start');
  expect(String(err.read())).toBe('[redacted] failed: GET [redacted]/start\n');
});

it('redacts a secret whole, also one that begins like another', () => {
  const redact = redactor(['adm_0123456789', 'adm_0123456789-and-more']);
  expect(redact('adm_0123456789-and-more adm_0123456789')).toBe('[redacted] [redacted]');
});

it('reads .env once, so that it can be a pipe from a password manager', async () => {
  const { runtime, dotEnv } = await workspaceDir(CONFIGURATION);
  await promisify(execFile)('mkfifo', [dotEnv]);
  const reading = readWorkspace({}, runtime);
  const pipe = await open(dotEnv, 'w');
  await pipe.writeFile('READERSHIP_API_KEY=from-a-pipe\n');
  await pipe.close();
  expect((await reading).configuration?.environment).toEqual({ READERSHIP_API_KEY: 'from-a-pipe' });
});

it('a command with --project is about that project only, not about those whose ids begin like it', async () => {
  const projects = 'projects: [{ id: prj_10 }, { id: prj_1 }, { id: prj_2 }]\n';
  const { runtime } = await workspaceDir(CONFIGURATION.replace(/projects: .+\n/, projects));
  const chosen = async (project?: string) =>
    (await readWorkspace(project === undefined ? {} : { project }, runtime)).projects.map(({ id }) => id);
  expect(await chosen('prj_1')).toEqual(['prj_1']);
  expect(await chosen()).toEqual(['prj_10', 'prj_1', 'prj_2']);
  await expect(chosen('prj_')).rejects.toThrow('No project prj_ in the configuration; there is prj_10,');
});

it('has its witness beside the configuration; that of the sandbox has none', async () => {
  const { runtime } = await workspaceDir(CONFIGURATION);
  const { configuration, witness } = await readWorkspace({}, runtime);
  expect(witness).toBe(join(configuration?.directory ?? '', '.readership.yaml.sent'));
  expect((await readWorkspace({ sandbox: true }, runtime)).witness).toBeUndefined();
});

it('refuses a data directory whose path DuckDB misreads', async () => {
  const { runtime } = await workspaceDir(`${CONFIGURATION}dataDir: what?\n`);
  await expect(readWorkspace({}, runtime)).rejects.toThrow(/\/what\? cannot be used.* set dataDir/);
});

it('gives publish.then and a query no secret, and publish.then nothing of .env', async () => {
  const channels = 'channels: { chat: { kind: slack } }\n';
  const { runtime, dotEnv } = await workspaceDir(
    `${CONFIGURATION}${channels}publish: { parquet: dataset, then: aws s3 sync dataset s3://bucket }\n`,
  );
  const secrets = {
    READERSHIP_API_KEY: 'a-long-key',
    READERSHIP_CHANNEL_CHAT: 'https://chat.example.com/services/T0/B0CDEFGHIJKLMNOP',
    READERSHIP_SMTP_URL: 'smtp://user:password@smtp.example.com',
  };
  const lines = Object.entries({ ...secrets, HTTPS_PROXY: 'http://p:1' }).map(
    ([name, value]) => `${name}=${value}\n`,
  );
  await writeFile(dotEnv, lines.join(''), { mode: 0o600 });
  const environment = { ...secrets, PATH: '/bin', AWS_SECRET_ACCESS_KEY: 'that-of-aws' };
  const given = { ...runtime, environment };
  const workspace = await readWorkspace({}, given);
  const configured = workspace.configuration ?? expect.fail();
  expect(configured.environment).toMatchObject(secrets);
  expect(Object.keys(withoutSecrets(configured.environment, configured.settings)).sort()).toEqual([
    'AWS_SECRET_ACCESS_KEY',
    'HTTPS_PROXY',
    'PATH',
  ]);
  expect(workspace.dataset).toEqual({
    location: join(configured.directory, 'dataset'),
    projects: configured.settings.projects,
    then: {
      command: 'aws s3 sync dataset s3://bucket',
      directory: configured.directory,
      environment: { PATH: '/bin', AWS_SECRET_ACCESS_KEY: 'that-of-aws' },
    },
  });
  // That is about the configured directory, and not about another one.
  expect((await readWorkspace({ parquet: 'other' }, given)).dataset?.then).toBeUndefined();
  expect((await readWorkspace({ parquet: 'other', sandbox: true }, given)).dataset?.then).toBeUndefined();
  // Words for a browser name no directory of this machine, wherever the data is.
  const elsewhere = { ...workspace, dataDir: '/srv/data' };
  const words = `${workspace.workspaceDir}/notes.yaml and /srv/data/history.duckdb`;
  expect(withoutDirectories(elsewhere, words)).toBe('notes.yaml and history.duckdb');
});
