import { Client, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { join } from 'node:path';
import { afterFile } from '../cleanup.js';

const CLI = join(import.meta.dirname, '../../dist/cli.js');

/** An assistant, using the SDK's own client: of `readership mcp` in a directory, or of another server. */
export async function mcpClient(
  cwd: string,
  transport: Transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [CLI, 'mcp'], cwd, stderr: 'pipe' },
    env: { PATH: process.env['PATH'] ?? '', READERSHIP_API_KEY: 'key_that_nobody_sees' },
  }),
) {
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
