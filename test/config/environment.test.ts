import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { apiKeyOf, type Environment, loadSettings, readEnvironment } from '../../src/config/load.js';
import { parseDuration } from '../../src/config/values.js';
import { ConfigurationError } from '../../src/errors.js';
import { tempDir } from '../temp-dir.js';

interface Files {
  readonly project?: string;
  readonly dotEnv?: string;
  readonly environment?: Environment;
}

/** The key of a project with this configuration, or why it has none, and what was noted. */
async function keyWith({ project = 'id: prj_1', dotEnv, environment = {} }: Files) {
  const directory = await tempDir();
  // The .env beside the configuration counts, and not that of the working directory.
  await mkdir(join(directory, 'etc'));
  const file = join('etc', 'acme.yaml');
  await writeFile(join(directory, file), `baseUrl: https://a.example\nprojects: [{ ${project} }]\n`);
  await writeFile(join(directory, '.env'), 'READERSHIP_API_KEY=elsewhere\n');
  if (dotEnv !== undefined) await writeFile(join(directory, 'etc', '.env'), dotEnv);
  const notes: string[] = [];
  const note = (words: string) => notes.push(words);
  const known = await readEnvironment(file, directory, environment, note);
  const { settings } = await loadSettings(file, directory);
  const [first = expect.fail('no project')] = settings.projects;
  return { key: () => apiKeyOf(known, first), notes };
}

describe('the API key', () => {
  it('comes from the environment, which wins over .env, with or without a byte order mark', async () => {
    const dotEnv = '# secrets\nREADERSHIP_API_KEY="from-file"\n';
    const environment = { READERSHIP_API_KEY: 'from-env' };
    expect((await keyWith({ dotEnv })).key()).toBe('from-file');
    expect((await keyWith({ dotEnv: '\ufeffREADERSHIP_API_KEY=adm_key_1\n' })).key()).toBe('adm_key_1');
    expect((await keyWith({ dotEnv, environment })).key()).toBe('from-env');
  });

  it('that is empty in the environment hides the one in .env, and a note says so', async () => {
    const dotEnv = 'READERSHIP_API_KEY=from-file\nREADERSHIP_SMTP_URL=\n';
    const environment = { READERSHIP_API_KEY: '', READERSHIP_SMTP_URL: '' };
    const { key, notes } = await keyWith({ dotEnv, environment });
    expect(key).toThrow('No API key for project prj_1');
    expect(notes).toEqual([expect.stringMatching(/^READERSHIP_API_KEY is empty .+ unset it/)]);
  });

  it('may come from the variable a project names', async () => {
    const project = 'id: prj_1, apiKeyEnv: ACME_KEY';
    const environment = { READERSHIP_API_KEY: 'other-key', ACME_KEY: 'acme-key' };
    expect((await keyWith({ project, environment })).key()).toBe('acme-key');
  });

  it.each([{}, { READERSHIP_API_KEY: '' }])('missing: the error says what to set', async (environment) => {
    const { key } = await keyWith({ environment });
    expect(key).toThrow(ConfigurationError);
    expect(key).toThrow(/project prj_1: set READERSHIP_API_KEY/);
  });

  it('loses the line break at the end of the file that it was read from', async () => {
    const environment = { READERSHIP_API_KEY: ' from-a-file\r\n' };
    expect((await keyWith({ environment })).key()).toBe('from-a-file');
  });

  it.each([
    ['with space', 'character 5 is a space'],
    ['with\nfeed', 'character 5 is a line break'],
    ['schlüssel', 'character 5 is “ü”'],
    ['adm_key\u200b123', 'character 8 is U+200B'],
    ['short', 'has fewer than 8 characters'],
  ])('%j: the error says what no key has, without showing it', async (key, words) => {
    const found = await keyWith({ environment: { READERSHIP_API_KEY: key } });
    expect(found.key).toThrow(ConfigurationError);
    expect(found.key).toThrow(words);
    expect(found.key).not.toThrow(key);
  });
});

describe('a duration', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['2m', 120_000],
    ['1h', 3_600_000],
    [' 5 s ', 5_000],
    ['0s', 0],
  ])('can be %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '5', 's', '-5s', '1.5h', '2 days', '1h30m', '5S', '577h', '1e12s', '3toString'])(
    'is never %j',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});
