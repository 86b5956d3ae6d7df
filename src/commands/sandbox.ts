import { join } from 'node:path';
import { ConfigurationError, messageOf, ReadershipError } from '../errors.js';
import { SANDBOX } from '../sandbox/state.js';
import { type Sandbox, startSandbox } from '../sandbox/index.js';
import { untilAborted } from '../sleep.js';
import { aPort, aWholeNumber, simpleCommand, value } from './command.js';

const DEFAULT_PORT = 4010;

export const sandbox = simpleCommand('sandbox', {
  summary: "serve a simulated platform's API on this machine, to try things out",
  description:
    'Serves a simulated platform on this machine, until Ctrl-C: the whole API, with realistic traffic, and agents that finish within seconds. It keeps its state in data/sandbox/sandbox.json.',
  options: {
    port: value('<number>', `port to listen on (default: ${DEFAULT_PORT})`, aPort),
    viewsPerHour: value(
      '<number>',
      'return 429 beyond this many page-view requests an hour (default: unlimited)',
      aWholeNumber,
    ),
  },
  examples: `
  readership sandbox
  readership sandbox --port 8080 --views-per-hour 100`,
  run: async ({ port = DEFAULT_PORT, ...options }, { workingDirectory, now, signal, output }) => {
    const stateFile = join(workingDirectory, 'data/sandbox/sandbox.json');
    const sandbox = await startSandbox({ now, port, ...options, stateFile }).catch((cause: unknown) => {
      if (cause instanceof ReadershipError) throw cause;
      throw new ConfigurationError(
        `Cannot serve the sandbox on port ${port}: ${messageOf(cause)}. Try another --port.`,
        { cause },
      );
    });
    output.goesOnUnread = true;
    try {
      output.data(instructions(sandbox));
      await untilAborted(signal);
    } finally {
      await sandbox.close();
    }
    return 0;
  },
});

const instructions = ({ baseUrl, apiKey, projectId }: Sandbox): string => `The sandbox is at ${baseUrl}

readership.yaml:
  baseUrl: ${baseUrl}
  projects:
    - { id: ${projectId}, name: ${SANDBOX.projectName}, siteUrl: ${SANDBOX.siteUrl} }

.env:
  READERSHIP_API_KEY=${apiKey}

Try it:
  curl -H 'Authorization: Bearer ${apiKey}' '${baseUrl}/v1/analytics/${projectId}/views?limit=3'

Press Ctrl-C to stop.`;
