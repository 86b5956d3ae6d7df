import {
  apiKeyOf,
  bucketNameOf,
  CODE_HOST_TOKEN_VARIABLE,
  CONFIG_FILE,
  type Configuration,
  DOT_ENV,
  type Environment,
  isTooShort,
  loadSettings,
  readEnvironment,
  SMTP_URL_VARIABLE,
  tooShort,
} from '../config/load.js';
import { parseMailAddress } from '../config/recipients.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { MACHINE_VARIABLE } from '../state/workspace.js';
import { ConfigurationError } from '../errors.js';
import { type Channel, openChannel, secretParts } from '../mail/channel.js';
import { expectSender, type MailTransport, outboxTransport, smtpTransport } from '../mail/transport.js';
import { redactor, unmistakable } from '../redact.js';
import type { Output } from '../terminal/output.js';

/** What the secrets of a workspace give access to. */
export interface Credentials {
  /** The API key of a project. Throws a `ConfigurationError` when it is missing. */
  readonly apiKeyOf: (project: ProjectSettings) => string;
  readonly codeHostToken: string | undefined;
  /** The mail server; without one, the outbox. Throws a `ConfigurationError` when its address cannot be read. */
  readonly openTransport: () => MailTransport;
  /** The configured channels, by name. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** The name under which the requests of a project are counted: those with the same key share one. */
  readonly bucketOf: (project: ProjectSettings) => string;
}

/** Reads the secrets from the environment. One that is missing or malformed stops only what needs it. */
export function credentialsOf(settings: Settings, environment: Environment, outboxDir: string): Credentials {
  const token = environment[CODE_HOST_TOKEN_VARIABLE];
  const smtpUrl = environment[SMTP_URL_VARIABLE] ?? '';
  const channels = Object.entries(settings.channels);
  return {
    apiKeyOf: (project) => apiKeyOf(environment, project),
    codeHostToken: token === '' ? undefined : token,
    openTransport: () => {
      if (smtpUrl === '') return outboxTransport(outboxDir);
      expectSender(smtpUrl, settings.mail?.from);
      return smtpTransport(smtpUrl);
    },
    channels: new Map(channels.map(([name, channel]) => [name, openChannel(channel, environment)])),
    bucketOf: (project) => bucketNameOf(project, environment),
  };
}

/** The variables that may contain secrets; without settings, those recognizable by name. */
export const secretNames = (environment: Environment, settings?: Settings): string[] =>
  Object.keys(environment).filter(
    (name) =>
      (name.startsWith('READERSHIP_') && name !== MACHINE_VARIABLE) ||
      (settings && secretVariables(settings, {}).some(([secret]) => secret === name)),
  );

/** As `secretNames`, with the proxies that need a login: a query sends nothing. */
export const secretNamesOfQueries = (environment: Environment, settings?: Settings): string[] => [
  ...secretNames(environment, settings),
  ...Object.keys(environment).filter(
    (name) => /(?:^|_)proxy$/i.test(name) && environment[name]?.includes('@') === true,
  ),
];

/** The environment without some variables. */
export const withoutVariables = (environment: Environment, names: readonly string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !names.includes(name)));

/** The environment for a process that needs no secrets. */
export const withoutSecrets = (environment: Environment, settings: Settings): NodeJS.ProcessEnv =>
  withoutVariables(environment, secretNames(environment, settings));

/**
 * The secrets: keys, the mail server's password, the addresses of channels, and the ping URL, with
 * which anyone could fake a successful night.
 */
export function secretsOf(configuration: Pick<Configuration, 'settings' | 'environment'>): string[] {
  const { settings, environment } = configuration;
  const inEnvironment = secretVariables(settings, environment).flatMap(([, values]) => values);
  const { pingUrl } = settings.alerts;
  return pingUrl === undefined ? inEnvironment : [...inEnvironment, pingUrl, new URL(pingUrl).pathname];
}

/** The variables that contain secrets, each with all its secret parts. */
function secretVariables({ projects, channels }: Settings, environment: Environment) {
  const keys = projects.map(({ apiKeyEnv }) => apiKeyEnv);
  const single = new Set([...keys, CODE_HOST_TOKEN_VARIABLE]);
  const ofChannels = Object.values(channels).flatMap(({ urlEnv, secretEnv = [] }) =>
    [urlEnv, secretEnv].flat(),
  );
  const smtpUrl = environment[SMTP_URL_VARIABLE] ?? '';
  return [
    ...[...single].map((name) => [name, [environment[name] ?? '']] as const),
    ...ofChannels.map((name) => [name, secretParts(environment[name] ?? '')] as const),
    [SMTP_URL_VARIABLE, [smtpUrl, ...loginIn(smtpUrl).passwords]] as const,
  ];
}

/** The user and the password in the address of a mail server; the password also as encoded in it. */
function loginIn(smtpUrl: string): { readonly user: string; readonly passwords: string[] } {
  if (!URL.canParse(smtpUrl)) return { user: '', passwords: [] };
  const { username, password } = new URL(smtpUrl);
  return { user: decoded(username), passwords: [password, decoded(password)] };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Throws a `ConfigurationError` if a secret is so short that redacting it would remove ordinary
 * words, or if the settings contain one, because messages, logs and reports quote settings.
 */
function refuseUnfitSecrets({ settings, environment }: Configuration): void {
  const text = JSON.stringify(settings);
  for (const [name, values] of secretVariables(settings, environment)) {
    if (values.some(isTooShort)) throw tooShort(name);
    if (redactor(unmistakable(values))(text) !== text)
      throw new ConfigurationError(
        `${CONFIG_FILE} contains the value of ${name}. Secrets belong only in the environment or in ${DOT_ENV}: remove it, and replace the secret if others could read it.`,
      );
  }
}

/** The settings with the user of the mail server as the sender, if they name none and it is an address. */
export function withSender(settings: Settings, environment: Environment): Settings {
  const { mail } = settings;
  const address = parseMailAddress(loginIn(environment[SMTP_URL_VARIABLE] ?? '').user);
  if (mail?.from.isDerived !== true || address === undefined) return settings;
  return { ...settings, mail: { ...mail, from: { ...mail.from, address } } };
}

/** Whether `.env` must be readable, or may be unreadable; with `none`, no secret is read at all. */
export type SecretsMode = 'required' | 'optional' | 'none';

/** Where a configuration is looked for, and what must not show its secrets. */
interface ConfigurationPlace {
  readonly workingDirectory: string;
  readonly environment: Environment;
  readonly output: Output;
}

/** Reads the configuration, and the environment with `.env`. Throws a `ConfigurationError`. */
export async function readConfiguration(
  config: string | undefined,
  { workingDirectory, environment, output }: ConfigurationPlace,
  secrets: SecretsMode,
): Promise<Configuration> {
  const known =
    secrets === 'none'
      ? environment
      : await readEnvironment(config, workingDirectory, environment, output.note, secrets);
  // Problems quote the configuration, which may contain a key by mistake.
  output.hide(secretNames(known).flatMap((name) => known[name] ?? []));
  const { settings, file, directory } = await loadSettings(config, workingDirectory);
  if (secrets === 'none') return { settings, file, directory, environment: {} };
  const configuration = { settings: withSender(settings, known), file, directory, environment: known };
  refuseUnfitSecrets(configuration);
  return configuration;
}
