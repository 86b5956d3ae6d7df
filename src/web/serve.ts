import { getRequestListener } from '@hono/node-server';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { ConfigurationError, messageOf } from '../errors.js';
import type { Reader } from '../warehouse/query.js';
import { inUrl } from './access.js';
import { openApp, type WebOptions } from './app.js';
import { askWith, parseAsked, rangeOf } from './asked.js';
import { WebHistory } from './history.js';

/** A running web app. `address` lets its reader in where that takes no password. */
export interface Web {
  readonly address: string;
  readonly port: number;
  readonly close: () => Promise<void>;
}

const MAX_CONNECTIONS = 256;

/** Serves the web app until it is closed. Throws a `ConfigurationError` when the port is taken. */
export async function serveWeb(options: WebOptions): Promise<Web> {
  const { workspace, settings } = options;
  const { projects, historyFile } = workspace;
  const history = new WebHistory(historyFile, workspace.settings.sql.maxMemory);
  const { app, access } = await openApp(options, history);

  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false, hostname: settings.host });
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (incoming, outgoing) => {
    void listener(incoming, outgoing);
  });
  server.maxConnections = MAX_CONNECTIONS;
  try {
    server.listen(settings.port, settings.host);
    await once(server, 'listening');
  } catch (cause) {
    const where = `${settings.host}, port ${settings.port}`;
    throw new ConfigurationError(`Cannot listen on ${where}: ${messageOf(cause)}. Choose another --port.`, {
      cause,
    });
  }
  // The first visitor does not wait until the largest query of the overview has been answered.
  const [project] = projects;
  const warm = async (reader: Reader) => {
    const asked = parseAsked({});
    const range = project && !('problem' in asked) && (await rangeOf(reader, project.id, asked));
    if (range) await askWith(reader, project, asked, range)('moved');
  };
  // What is wrong with the history is said on its pages.
  void history.with(warm).catch(() => undefined);
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : settings.port;
  const base = settings.url ?? `http://${inUrl(settings.host)}:${port}`;
  return {
    address: access.linkToken === undefined ? `${base}/` : `${base}/?token=${access.linkToken}`,
    port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      history.close();
    },
  };
}
