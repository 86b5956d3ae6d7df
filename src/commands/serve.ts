import { withoutSecrets } from '../app/secrets.js';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { DEFAULT_SERVE, serveAt } from '../config/serve.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { untilAborted } from '../sleep.js';
import { askLine, openInBrowser } from '../terminal/person.js';
import { flag, LISTENING, projectCommand } from './command.js';

export const serve = projectCommand('serve', {
  summary: 'look at the history in the browser',
  description:
    'Shows the history in the browser, until Ctrl-C or SIGTERM: who reads the site and each page, people and AI, agent jobs, reports and what needs attention; also /healthz for probes. It listens on this machine only, and lets in anyone who opens the link that it prints. To listen elsewhere, it needs a password: docs/serve.md.',
  options: {
    ...LISTENING,
    open: flag('open it in the browser'),
    hashPassword: flag('read a password from standard input, and write its hash for the configuration'),
  },
  examples: `
  readership serve --sandbox --open      look around without an account
  readership serve --port 9000
  readership serve --hash-password       the line for serve.password`,
  endsByInterruption: () => true,
  run: async ({ port, host, ...options }, runtime) => {
    if (options.hashPassword === true) return writeHash(runtime);
    const { output, signal } = runtime;
    const workspace = await readWorkspace(options, runtime);
    const settings = serveAt(workspace.settings.serve ?? DEFAULT_SERVE, { host, port });
    const { serveWeb } = await import('../web/serve.js');
    output.goesOnUnread = true;
    const web = await serveWeb({ workspace, runtime, settings, onError: output.note });
    try {
      output.data(web.address);
      output.note('Press Ctrl-C to stop.');
      if (options.open === true)
        openInBrowser(web.address, withoutSecrets(runtime.environment, workspace.settings), output);
      await untilAborted(signal);
    } finally {
      await web.close();
    }
    return 0;
  },
});

export const mcp = projectCommand('mcp', {
  summary: 'let an AI assistant query the history (Model Context Protocol)',
  description:
    'Serves the history to an AI assistant over standard input and output, until the assistant disconnects: SQL, the weekly report, pages, what moved, and the pages to improve. It can change nothing, and reads no secrets. How to add it to an assistant: docs/mcp.md.',
  examples: `
  readership mcp --sandbox
  readership mcp --config /srv/readership/readership.yaml`,
  endsByInterruption: () => true,
  run: async (options, runtime) => {
    const workspace = await readWorkspace(options, runtime, 'none');
    const { serveAssistant } = await import('../web/mcp.js');
    await serveAssistant(workspace, options, runtime);
    return 0;
  },
});

/** Reads a password that a terminal does not show. */
async function writeHash({ output, signal }: Runtime): Promise<ExitCode> {
  const question = process.stdin.isTTY ? 'Type the password (not shown), and press Enter: ' : '';
  const password = (await askLine(question, signal, { isHidden: true })) ?? '';
  if (password.length < 12) throw new ConfigurationError('Choose a password of at least 12 characters.');
  const { hashPassword } = await import('../web/access.js');
  output.data(`password: ${await hashPassword(password)}`);
  return 0;
}
