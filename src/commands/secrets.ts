import { type Configuration, CONFIG_FILE, DOT_ENV, type Environment } from '../config/load.js';
import { ConfigurationError } from '../errors.js';
import { SMTP_URL_VARIABLE } from '../mail/smtp-server.js';
import { redactor, unmistakable } from '../redact.js';

/**
 * What nobody is to read: the keys, the mail server's password and the address that holds it, and the address that is
 * pinged, since whoever has it can fake a night.
 */
export function secretsOf({ settings, environment }: Configuration): string[] {
  const inEnvironment = secretVariables({ settings, environment }).flatMap(([, values]) => values);
  const { pingUrl } = settings.alerts;
  return pingUrl === undefined ? inEnvironment : [...inEnvironment, pingUrl, new URL(pingUrl).pathname];
}

/** What may be a secret, as long as the configuration has not been read that says which are. */
export const variablesOfOurs = (environment: Environment): string[] =>
  Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith('READERSHIP_') && value !== undefined ? value : [],
  );

/** Settings are quoted in messages, logs and reports. Throws a `ConfigurationError` when a secret is among them. */
export function refuseSecretsInSettings(configuration: Configuration): void {
  const settings = JSON.stringify(configuration.settings);
  for (const [name, values] of secretVariables(configuration))
    if (redactor(unmistakable(values))(settings) !== settings)
      throw new ConfigurationError(
        `${CONFIG_FILE} holds the value of ${name}. Secrets belong in the environment or in ${DOT_ENV} alone: take it out, and replace it if others could read it.`,
      );
}

/** The variables that hold secrets, each with all that is secret of it. */
function secretVariables({
  settings,
  environment,
}: Pick<Configuration, 'settings' | 'environment'>): [name: string, values: string[]][] {
  const keys = new Set(settings.projects.map(({ apiKeyEnv }) => apiKeyEnv));
  const smtpUrl = environment[SMTP_URL_VARIABLE] ?? '';
  return [
    ...[...keys].map((name): [string, string[]] => [name, [environment[name] ?? '']]),
    [SMTP_URL_VARIABLE, [smtpUrl, ...passwordIn(smtpUrl)]],
  ];
}

/** As it is written in the address, and as it is. */
function passwordIn(smtpUrl: string): string[] {
  if (!URL.canParse(smtpUrl)) return [];
  const { password } = new URL(smtpUrl);
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
