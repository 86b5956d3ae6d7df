import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadSettings, readEnvironment } from '../../src/config/load.js';
import { ConfigurationError } from '../../src/errors.js';
import { errorOf } from '../api/open-client.js';
import { tempDir } from '../temp-dir.js';

const SMALLEST = 'baseUrl: https://platform.example.com\nprojects: [{ id: prj_1 }]\n';

/** What is wrong, the file, and its problem. */
type Wrong = [what: string, yaml: string, problem: RegExp];

const withBaseUrl = (url: string, problem: RegExp): Wrong => [
  `the address ${url}`,
  `baseUrl: '${url}'\nprojects: [{ id: prj_1 }]`,
  problem,
];

/** A few lines that expand to many thousands of values. */
const BOMB = [
  'a: &a [x,x,x,x,x,x,x,x,x,x]',
  'b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]',
  'c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]',
  'd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]',
].join('\n');

/** What a password looks like in the file. */
const HASH = `scrypt:${'a'.repeat(22)}:${'b'.repeat(43)}`;

/** The settings in a file. */
async function load(yaml: string) {
  const directory = await tempDir();
  await writeFile(join(directory, 'readership.yaml'), yaml);
  return (await loadSettings(undefined, directory)).settings;
}

/** The message of the `ConfigurationError` that a file leads to. */
async function problemsIn(yaml: string): Promise<string> {
  const error = await errorOf(load(yaml));
  expect(error).toBeInstanceOf(ConfigurationError);
  expect(error).toHaveProperty('exitCode', 2);
  return error.message;
}

describe('readership.yaml', () => {
  it('tells projects with the same name apart by their ids', async () => {
    const projects = 'projects: [{ id: a, name: Docs }, { id: b, name: Docs }, { id: c, name: API }]';
    const settings = await load(`baseUrl: https://a.example\n${projects}`);
    expect(settings.projects.map(({ name }) => name)).toEqual(['Docs (a)', 'Docs (b)', 'API']);
  });

  it('lists all its problems at once, each with its line', async () => {
    const message = await problemsIn(
      [
        'baseUrl: platform', // 1
        'projects:', // 2
        '  - name: Acme', // 3: no id
        '    sitUrl: https://docs.example.com', // 4: unknown
        '  - { id: prj_2, siteUrl: docs }', // 5
        'history:', // 6
        '  start: 2026-02-30', // 7: no such day
        '  settleDays: -1', // 8
        '  setleDays: 6', // 9: unknown
        'colour: red', // 10: unknown
        'schedule: { timezone: Mars,', // 11
        '  export: nightly }', // 12
        'reports: { firstDayOfWeek: noday,', // 13
        '  weekly: docs@example.com }', // 14
        'alerts: { to: ops }', // 15
      ].join('\n'),
    );
    const places = [...message.matchAll(/readership\.yaml:(\d+) {2}(\S+): /g)];
    expect(places.map(([, line, name]) => `${line} ${name}`).join(', ')).toBe(
      '1 baseUrl, 3 projects[0].id, 4 projects[0].sitUrl, 5 projects[1].siteUrl, ' +
        '7 history.start, 8 history.settleDays, 9 history.setleDays, 10 colour, ' +
        '11 schedule.timezone, 12 schedule.export, 13 reports.firstDayOfWeek, 14 reports.weekly, 15 alerts.to',
    );
    expect(message).toContain('has 13 problems');
    expect(message).toContain(
      'history.setleDays: unknown setting; there is start, settleDays, requestsPerHour',
    );
    expect(message).toContain('colour: unknown setting; there is baseUrl, projects, allowInsecure, ');
    expect(message).toContain('history.settleDays: at least 0');
  });

  it('says of the settings of 0.4 that are gone what holds instead', async () => {
    const message = await problemsIn(`${SMALLEST}history: { maxWait: 1h }\nimprove: { experiment: off }\n`);
    expect(message).toMatch(/history\.maxWait: is gone: [^]+ improve\.experiment: is gone: .+ delete it$/);
  });

  it('may use YAML anchors and aliases', async () => {
    const settings = await load(
      `${SMALLEST}mail: { from: a@example.com }\nreports: { weekly: { to: &team [b@example.com] }, improve: { to: *team } }\n`,
    );
    expect(settings.reports.audiences['improve']?.[0]?.to).toEqual(['b@example.com']);
  });

  it.each<Wrong>([
    ['an open bracket', SMALLEST.replace(' }]', ''), /:[23] .*a bracket is missing/],
    ['nothing in it', '# nothing yet\n', /baseUrl: is missing[^]+projects: is missing/],
    [
      'a duplicate key',
      `${SMALLEST}baseUrl: https://b.example\n`,
      /:3 {2}this setting is there twice: keep one/,
    ],
    ['a tab for indentation', 'projects:\n\t- id: prj_1\n', /:2 {2}indented with a tab: use spaces/],
    ['a number for a text', 'baseUrl: 5\nprojects: [{ id: 7 }]\n', /:2 {2}projects\[0\]\.id: write text/],
    ['a text for a number', `${SMALLEST}history: { settleDays: three }`, /:3 .+settleDays: write a number/],
    ['part of a number', `${SMALLEST}history: { settleDays: 1.5 }`, /:3 .+settleDays: write a whole number/],
    ['a text for a section', `${SMALLEST}history: all`, /:3 {2}history: write its settings, each as name: /],
    ['a word that it does not know', `${SMALLEST}improve: { mode: on }`, /:3 .+mode: write plan or apply/],
    ['no projects', 'baseUrl: https://a.example\nprojects: []', /:2 {2}projects: name at least one project/],
    ['a project twice', SMALLEST.replace('[', '[{ id: prj_1 }, '), /contains a project id twice/],
    [
      'a web app below a path',
      `${SMALLEST}serve: { url: https://example.com/readers }`,
      /:3 {2}serve\.url: has a path, but the web app needs a host of its own/,
    ],
    ['an asterisk that YAML reads as an alias', `${SMALLEST}improve:\n  exclude: [**/drafts]\n`, /:4 {2}/],
    ['a key that is not text', `${SMALLEST}1: 2\n`, /:3 {2}1: unknown setting/],
    [
      'a missing colon, once, although the lines after it are invalid too',
      'baseUrl: https://a.example\nprojects\n  - id: a\n    name: b\n',
      /has a problem:\n.+:2 {2}.+$/,
    ],
    ['a second document', `${SMALLEST}---\ncolour: red\n`, /:3 {2}a second document begins here/],
    ['aliases that expand without end', BOMB, /:2 {2}YAML aliases repeat too many values/],
    ...['"Acme\\nBcc: eve@example.com"', '"Acme\\e[2J"', '"Acme\\L"', '""'].map((name): Wrong => [
      `the name ${name}, which would be in subjects`,
      `baseUrl: https://a.example\nprojects:\n  - id: prj_1\n    name: ${name}\n`,
      /:4 {2}projects\[0\]\.name: write text on one line/,
    ]),
    ...[
      'https://user:secret@platform.example.com',
      'HTTPS://user:secret@platform.example.com',
      'https://secret@platform.example.com/api',
    ].map((url) => withBaseUrl(url, /baseUrl: contains a user name .+ secrets belong in the environment$/)),
    ...['https://platform.example.com/?key=secret', 'https://platform.example.com/#top'].map((url) =>
      withBaseUrl(url, /baseUrl: contains a query or a fragment/),
    ),
    ...['ftp://a.example', 'platform.example.com', ''].map((url) =>
      withBaseUrl(url, /baseUrl: enter a full URL that starts with https:/),
    ),
    ...['http://10.0.0.1', 'http://127.0.0.1.example.com', 'http://[::2]'].map((url) =>
      withBaseUrl(url, /baseUrl: would send the API key unencrypted/),
    ),
    ...['s3://bucket/data', 'file:///data', '~/data'].map((dataDir): Wrong => [
      `${dataDir} as dataDir`,
      `${SMALLEST}dataDir: ${dataDir}\n`,
      /:3 {2}dataDir: not a local directory: .* instead of with ~/,
    ]),
    [
      's3:// as a dataset',
      `${SMALLEST}publish: { parquet: s3://b }`,
      /:3 .+set publish\.then: docs\/scale\.md/,
    ],
    ...[
      'docs/**',
      '*.pdf',
      '^/docs',
      '/docs/?$',
      '/docs/.*',
      '/docs/**/*.md',
      'https://a.example/*',
      '!/docs',
    ].map((given): Wrong => [
      `the exclusion ${given}, which would protect nothing`,
      `${SMALLEST}improve: { exclude: ['/drafts/*', '${given}'] }`,
      /:3 {2}improve\.exclude\[1\]: matches no page: write a path that begins with \/, such as \/docs\/\*\*/,
    ]),
    ...['^/sdks', '/sdks/.*', 'https://docs.example.com/sdks/*'].map((where): Wrong => [
      `the part ${where} of a report`,
      `${SMALLEST}reports: { weekly: { to: [a@example.com], where: '${where}' } }`,
      /:3 {2}reports\.weekly\.where: matches no page: write a path/,
    ]),
    ...(
      [
        [
          'editors: [ann]',
          /serve\.editors: restricts nobody, .+: set serve\.header, or .+ serve\.viewerPassword/,
        ],
        [`editors: [ann], password: '${HASH}'`, /serve\.editors: restricts nobody/],
        [`viewerPassword: '${HASH}'`, /serve\.viewerPassword: lets nobody in without serve\.password/],
        [`password: '${HASH}', viewerPassword: '${HASH}'`, /viewerPassword: is the same as serve\.password/],
        [`header: x-user, password: '${HASH}'`, /serve\.password: lets nobody in, .+: remove one of them/],
        [`header: x-user, viewerPassword: '${HASH}'`, /viewerPassword: lets nobody in, .+ serve\.editors/],
      ] as const
    ).map(([serve, problem]): Wrong => [`serve: ${serve}`, `${SMALLEST}serve: { ${serve} }`, problem]),
    ...(
      [
        ['projects: [{ id: prj_1, apiKey: adm_secret }]', 'projects\\[0\\]\\.apiKey'],
        ['smtpUrl: smtps://a:secret@b.example', 'smtpUrl'],
        ['mail: { password: secret }', 'mail\\.password'],
        ['pullRequests: { token: secret }', 'pullRequests\\.token'],
      ] as const
    ).map(([yaml, setting]): Wrong => [
      `a secret in ${setting}`,
      yaml.startsWith('projects') ? `baseUrl: https://a.example\n${yaml}` : `${SMALLEST}${yaml}`,
      new RegExp(`${setting}: unknown setting; .+ A secret does not belong in this file: write it in \\.env`),
    ]),
    ...['adm_0123456789abcdef_secret', 'ADM0123456789ABCDEFSECRET', 'sk-secret'].map((key): Wrong => [
      `the key ${key} in place of its name`,
      `baseUrl: https://a.example\nprojects:\n  - { id: prj_1, apiKeyEnv: ${key} }`,
      /:3 {2}projects\[0\]\.apiKeyEnv: not the name of an environment variable: write one in capitals/,
    ]),
    ['a command without a dataset', `${SMALLEST}publish: { then: x }`, /then: .+ set publish\.parquet too/],
    ['a list at the top', '- baseUrl\n- projects\n', /:1 {2}/],
    ['plain text', 'hello', /:1 {2}/],
  ])('with %s is a problem with its line, not a crash', async (_, yaml, words) => {
    const message = await problemsIn(yaml);
    expect(message).toMatch(words);
    expect(message).not.toMatch(/secret@|_secret|SECRET$|-secret/);
  });

  it.each(['http://localhost:8080', 'http://127.8.8.8:1', 'http://[::1]:1', 'https://a.example/api'])(
    'accepts %s, which stays on this machine or is encrypted, with slashes at its end',
    async (baseUrl) => {
      const settings = await load(`baseUrl: ${baseUrl}//\nprojects: [{ id: prj_1 }]\n`);
      expect(settings.baseUrl).toBe(baseUrl);
    },
  );

  it('may send the key unencrypted if allowInsecure is set', async () => {
    const yaml = SMALLEST.replace('https', 'http');
    expect((await load(`${yaml}allowInsecure: true\n`)).allowInsecure).toBe(true);
  });

  it.each([
    ['latin1', 3],
    ['utf16le', 1],
  ] as const)(
    'in %s is refused with the first line that is not in UTF-8, as .env is',
    async (encoding, line) => {
      const directory = await tempDir();
      const bytes = Buffer.from(`\ufeff${SMALLEST}# Café`.slice(encoding === 'latin1' ? 1 : 0), encoding);
      const words = `${line}  is not in UTF-8: save it in that encoding`;
      await writeFile(join(directory, 'readership.yaml'), bytes);
      await expect(loadSettings(undefined, directory)).rejects.toThrow(`readership.yaml:${words}`);
      await writeFile(join(directory, '.env'), bytes);
      await expect(readEnvironment(undefined, directory, {}, String)).rejects.toThrow(`.env:${words}`);
    },
  );

  it('that does not exist: the error names both ways forward, or the file that was named', async () => {
    const directory = await tempDir();
    const loading = loadSettings(undefined, directory);
    await expect(loading).rejects.toThrow(ConfigurationError);
    await expect(loading).rejects.toThrow(/readership init[\s\S]*readership run --sandbox/);
    const words = `There is no configuration ${join(directory, 'other.yaml')}: correct --config.`;
    await expect(loadSettings('other.yaml', directory)).rejects.toThrow(words);
  });

  it('given by name: its paths are relative to it', async () => {
    const directory = await tempDir();
    await mkdir(join(directory, 'etc'));
    await writeFile(join(directory, 'etc', 'acme.yaml'), `${SMALLEST}dataDir: store/here\n`);
    const { settings, ...found } = await loadSettings('etc/acme.yaml', directory);
    expect(settings.dataDir).toBe(join(directory, 'etc', 'store', 'here'));
    expect(found.directory).toBe(join(directory, 'etc'));
    expect((await load(`${SMALLEST}dataDir: /srv/readership\n`)).dataDir).toBe('/srv/readership');
  });
});
