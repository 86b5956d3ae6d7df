import { type Command, InvalidArgumentError } from 'commander';
import { once } from 'node:events';
import { join } from 'node:path';
import { ConfigurationError, type ExitCode, messageOf, ReadershipError } from '../errors.js';
import type { Act } from './options.js';
import type { Runtime } from '../app/workspace.js';
import { SANDBOX } from '../sandbox/defaults.js';
import { type Sandbox, startSandbox } from '../sandbox/index.js';

interface SandboxOptions {
  readonly port: number;
  readonly viewsPerHour?: number;
}

export function declareSandbox(program: Command, act: Act): void {
  program
    .command('sandbox')
    .summary('serve the API locally, to try things out')
    .description(
      'Serves the whole documented API on this machine until interrupted, with realistic traffic and agents that finish within seconds. It stores its jobs in data/sandbox/sandbox.json.',
    )
    .option('--port <number>', 'port to listen on', portNumber, 4010)
    .option(
      '--views-per-hour <number>',
      'return 429 beyond this many page-view requests an hour (default: unlimited)',
      wholeNumber,
    )
    .addHelpText(
      'after',
      '\nExamples:\n  readership sandbox\n  readership sandbox --port 8080 --views-per-hour 100',
    )
    .action((options: SandboxOptions) => act((runtime) => serve(options, runtime)));
}

async function serve(options: SandboxOptions, runtime: Runtime): Promise<ExitCode> {
  const { workingDirectory, now, signal, output } = runtime;
  const stateFile = join(workingDirectory, 'data/sandbox/sandbox.json');
  const sandbox = await start(options.port, () => startSandbox({ now, ...options, stateFile }));
  try {
    output.data(instructions(sandbox));
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await sandbox.close();
  }
  return 0;
}

async function start(port: number, begin: () => Promise<Sandbox>): Promise<Sandbox> {
  try {
    return await begin();
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(
      `Cannot serve the sandbox on port ${port}: ${messageOf(cause)}. Try another --port.`,
      { cause },
    );
  }
}

const instructions = ({ baseUrl, apiKey, projectId }: Sandbox): string => `The sandbox is at ${baseUrl}

readership.yaml:
  baseUrl: ${baseUrl}
  projects:
    - { id: ${projectId}, name: ${SANDBOX.projectName}, siteUrl: ${SANDBOX.siteUrl} }

.env:
  READERSHIP_API_KEY=${apiKey}

Try it:
  curl -H 'Authorization: Bearer ${apiKey}' '${baseUrl}/v1/analytics/${projectId}/views?limit=3'
Requests and jobs so far: ${baseUrl}/_sandbox/requests and ${baseUrl}/_sandbox/jobs
Faults on demand: PUT a list to ${baseUrl}/_sandbox/faults, such as [{"on": "views", "kind": "status", "status": 500}]

Press Ctrl-C to stop.`;

function portNumber(text: string): number {
  const port = wholeNumber(text);
  if (port > 65_535) throw new InvalidArgumentError('A port is a whole number up to 65535.');
  return port;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Use a whole number.');
  return Number(text);
}
