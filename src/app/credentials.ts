import {
  apiKeyOf,
  bucketNameOf,
  CODE_HOST_TOKEN_VARIABLE,
  type Environment,
  SMTP_URL_VARIABLE,
} from '../config/load.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { type Channel, openChannel } from '../mail/channel.js';
import { expectSender, type MailTransport, outboxTransport, smtpTransport } from '../mail/transport.js';

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
