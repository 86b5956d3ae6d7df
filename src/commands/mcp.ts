import { once } from 'node:events';
import { readWorkspace } from '../app/workspace.js';
import { defineCommand } from './command.js';

export const mcp = defineCommand({
  name: 'mcp',
  scope: 'project',
  summary: 'let an AI assistant query the history (Model Context Protocol)',
  description:
    'Serves the published history to an AI assistant over standard input and output, until the assistant disconnects: SQL in the safe mode of readership sql, the weekly report, pages, movers and proposals. Read only; it reads no secrets. How to add it to an assistant: docs/mcp.md.',
  examples: `
  readership mcp --sandbox
  readership mcp --config /srv/readership/readership.yaml`,
  endsByInterruption: () => true,
  run: async (options, runtime) => {
    const workspace = await readWorkspace(options, runtime, false);
    const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
    const { mcpServer } = await import('../web/mcp.js');
    const { openSources } = await import('../web/request.js');
    const sources = openSources(workspace, options, runtime);
    const left = once(process.stdin, 'end', { signal: runtime.signal }).catch(() => undefined);
    const handle = serveStdio(() => mcpServer(sources), {
      onerror: ({ message }) => runtime.output.note(message),
    });
    await left;
    await handle.close();
    sources.history.close();
    return 0;
  },
});
