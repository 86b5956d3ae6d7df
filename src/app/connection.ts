import { join } from 'node:path';
import { CodeHost } from '../agents/pull-requests.js';
import { Client, type ClientOptions } from '../api/client.js';
import { askForDate, PlatformClock } from '../api/clock.js';
import type { Pace } from '../api/retry.js';
import { Transport } from '../api/transport.js';
import { apiKeyOf, CODE_HOST_TOKEN_VARIABLE, SMTP_URL_VARIABLE } from '../config/load.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Channel, openChannel } from '../mail/channel.js';
import { type MailTransport, outboxTransport, smtpTransport } from '../mail/transport.js';
import { SANDBOX } from '../sandbox/defaults.js';
import type { Runtime, Workspace } from './workspace.js';

/** The API of each project. `close` ends connections, and the embedded sandbox if one was started. */
export interface Connection {
  readonly clientOf: (project: ProjectSettings) => Client;
  readonly clock: PlatformClock;
  readonly codeHost: CodeHost | undefined;
  readonly close: () => Promise<void>;
}

interface Callbacks extends Pick<ClientOptions, 'onRetry' | 'onRequest'> {
  /** Called once if the clocks of this machine and the platform are far apart. */
  readonly onSkew: (words: string) => void;
}

/** Starts the embedded sandbox if the workspace uses it. Clients are created, and keys read, on first use. */
export async function connect(
  workspace: Workspace,
  runtime: Runtime,
  { onSkew, ...callbacks }: Callbacks,
  paceOf: (project: ProjectSettings) => Pace | undefined,
): Promise<Connection> {
  const { configuration, settings } = workspace;
  const sandbox = configuration === undefined ? await startOwnSandbox(workspace, runtime) : undefined;
  const baseUrl = sandbox?.baseUrl ?? settings.baseUrl;
  const ask = () => askForDate(baseUrl, runtime.signal);
  const clock = new PlatformClock({ baseUrl, now: runtime.now, ask, onSkew });
  const clients = new Map<string, Client>();
  const transport = new Transport({ concurrency: settings.history.concurrency }, clock.observe);
  const token = configuration?.environment[CODE_HOST_TOKEN_VARIABLE];
  const codeHost =
    settings.pullRequests &&
    new CodeHost(settings.pullRequests, token === '' ? undefined : token, runtime.now);
  return {
    ...{ clock, codeHost },
    clientOf: (project) => {
      const known = clients.get(project.id);
      if (known !== undefined) return known;
      const pace = paceOf(project);
      const client = new Client({
        baseUrl,
        projectId: project.id,
        apiKey: configuration === undefined ? SANDBOX.apiKey : apiKeyOf(configuration, project),
        keyName: project.apiKeyEnv,
        now: runtime.now,
        transport,
        ...(pace === undefined ? {} : { pace }),
        ...callbacks,
      });
      clients.set(project.id, client);
      return client;
    },
    close: async () => {
      await transport.close();
      await codeHost?.close();
      await sandbox?.close();
    },
  };
}

async function startOwnSandbox({ dataDir }: Workspace, { now }: Runtime) {
  const { startSandbox } = await import('../sandbox/index.js');
  return startSandbox({ now, stateFile: join(dataDir, 'sandbox.json') });
}

/** The mail server from the environment; without one, or in the sandbox, the outbox. */
export function transportOf({ configuration, outboxDir }: Workspace): MailTransport {
  const url = configuration?.environment[SMTP_URL_VARIABLE] ?? '';
  return url === '' ? outboxTransport(outboxDir) : smtpTransport(url);
}

/** The configured channels by name, with their addresses and secrets from the environment. */
export const channelsOf = ({
  settings,
  configuration,
}: Pick<Workspace, 'settings' | 'configuration'>): Map<string, Channel> =>
  new Map(
    Object.entries(settings.channels).map(([name, channel]) => [
      name,
      openChannel(channel, configuration?.environment ?? {}),
    ]),
  );
