import type { Command } from 'commander';
import { once } from 'node:events';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import type { ExitCode } from '../errors.js';
import { type Act, withProjectOption, withWorkspaceOptions } from './options.js';

export function declareMcp(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('mcp')))
    .summary('answer the questions of an AI assistant (Model Context Protocol)')
    .description(
      'Serves the published history to an AI assistant over standard input and output, until the assistant disconnects: SQL in the safe mode of readership sql, the weekly report, pages, movers and proposals. Read only; it reads no secrets. How to add it to an assistant: docs/mcp.md.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  readership mcp --sandbox\n  readership mcp --config /srv/readership/readership.yaml',
    )
    .action((options: WorkspaceOptions) =>
      act((runtime) => mcp(options, runtime), { endsByInterruption: true }),
    );
}

async function mcp(options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime, false);
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  const { mcpServer } = await import('../web/mcp.js');
  const { openSources } = await import('../web/sources.js');
  const sources = openSources(workspace, options, runtime);
  const left = once(process.stdin, 'end', { signal: runtime.signal }).catch(() => undefined);
  const handle = serveStdio(() => mcpServer(sources), {
    onerror: ({ message }) => {
      runtime.output.note(message);
    },
  });
  await left;
  await handle.close();
  sources.history.close();
  return 0;
}
