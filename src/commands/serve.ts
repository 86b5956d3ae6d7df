import { type Command, InvalidArgumentError } from 'commander';
import { once } from 'node:events';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { DEFAULT_SERVE } from '../config/serve.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { askLine } from '../terminal/ask.js';
import { hashPassword } from '../web/access.js';
import { serveWeb } from '../web/serve.js';
import { openInBrowser } from './open.js';
import { type Act, withProjectOption, withWorkspaceOptions } from './options.js';

interface ServeOptions extends WorkspaceOptions {
  readonly port?: number;
  readonly host?: string;
  readonly open?: boolean;
  readonly hashPassword?: boolean;
}

export function declareServe(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('serve')))
    .summary('look at the history in the browser, and ask it questions')
    .description(
      'Serves a web app over the published history until Ctrl-C or SIGTERM: who reads the site, each page, what AI reads, agents, SQL, reports, the health of the data, /metrics for Prometheus and /healthz for probes. It listens on this machine only and lets in anyone who opens the link that it prints. To listen elsewhere, it needs a password or a proxy that signs people in: docs/serve.md.',
    )
    .option('--port <port>', 'the port; 0 takes a free one (default: serve.port, 8420)', portArgument)
    .option('--host <host>', 'the address to listen on (default: serve.host, 127.0.0.1)')
    .option('--open', 'open it in the browser')
    .option(
      '--hash-password',
      'read a password from standard input, and write its hash for the configuration',
    )
    .addHelpText(
      'after',
      `
Examples:
  readership serve --sandbox --open      look around without an account
  readership serve --port 9000
  readership serve --hash-password       the line for serve.password in readership.yaml`,
    )
    .action((options: ServeOptions) =>
      act((runtime) => (options.hashPassword === true ? writeHash(runtime) : serve(options, runtime)), {
        endsByInterruption: true,
      }),
    );
}

function portArgument(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (port <= 65_535) return port;
  throw new InvalidArgumentError('A port is a whole number up to 65535.');
}

async function serve(options: ServeOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, signal } = runtime;
  const workspace = await readWorkspace(options, runtime);
  const { port, host } = options;
  const settings = {
    ...(workspace.settings.serve ?? DEFAULT_SERVE),
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
  };
  const onError = (words: string) => {
    output.note(words);
  };
  const web = await serveWeb({ workspace, options, runtime, settings, onError });
  try {
    output.data(web.address);
    output.note('Press Ctrl-C to stop.');
    if (options.open === true) openInBrowser(web.address, runtime);
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await web.close();
  }
  return 0;
}

/** Reads a password that a terminal does not show. */
async function writeHash({ output, signal }: Runtime): Promise<ExitCode> {
  const question = process.stdin.isTTY ? 'Type the password, which is not shown, and Enter: ' : '';
  const password = (await askLine(question, signal, { isHidden: true })) ?? '';
  if (password.length < 12) throw new ConfigurationError('Choose a password of at least 12 characters.');
  output.data(`password: ${await hashPassword(password)}`);
  return 0;
}
