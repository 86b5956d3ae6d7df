import { Client, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterFile } from '../cleanup.js';
import { CLI } from '../run-cli.js';

/** Starts `readership mcp` in a directory. */
export const mcpProcess = (cwd: string, more: Readonly<Record<string, string>> = {}): Transport =>
  new StdioClientTransport({
    ...{ command: process.execPath, args: [CLI, 'mcp'], cwd, stderr: 'pipe' },
    env: { PATH: process.env['PATH'] ?? '', READERSHIP_API_KEY: 'key_that_nobody_sees', ...more },
  });

/** An assistant, using the SDK's own client: of `readership mcp` in a directory, or of another server. */
export async function mcpClient(cwd: string, transport = mcpProcess(cwd)) {
  const client = new Client({ name: 'test', version: '1' });
  afterFile(() => client.close());
  await client.connect(transport);
  /** The text of an answer, marked if it is an error. */
  const ask = async (name: string, args: Record<string, unknown> = {}): Promise<string> => {
    const { content, isError } = await client.callTool({ name, arguments: args });
    const text = content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');
    return isError === true ? `error: ${text}` : text;
  };
  return { client, ask };
}
