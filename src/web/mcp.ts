import { McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { secretNamesOfQueries, withoutVariables } from '../app/secrets.js';
import {
  optionsOf,
  withoutDirectories,
  type Runtime,
  type Workspace,
  type WorkspaceOptions,
} from '../app/workspace.js';
import { messageOf } from '../errors.js';
import { packageFile, version } from '../files.js';
import { asInvoked } from '../format/advice.js';
import { escapeLines } from '../format/text.js';
import { QueryProcesses } from '../sql/query-processes.js';
import { readSql } from '../columns.js';
import { openSources } from './request.js';
import { type Call, fitted, type Tool } from './tool.js';
import { TOOLS } from './tools.js';

const named = <Text extends z.ZodRawShape>(text: Text) => z.record(z.string(), z.object(text));
/** What the assistant reads about this server. */
const words = z
  .object({
    notice: z.string(),
    instructions: z.string(),
    tools: named({ title: z.string(), description: z.string() }),
    prompts: named({ title: z.string(), text: z.string() }),
    resources: z.record(z.string(), z.string()),
  })
  .parse(parse(readSql(import.meta.url, 'assistant.yaml')));

const LONGEST_QUERY_MS = 60_000;

/**
 * Serves the history to an assistant by the Model Context Protocol, over standard input and output, until it
 * disconnects. `options` are those that the workspace was found with.
 */
export async function serveAssistant(
  workspace: Workspace,
  options: WorkspaceOptions,
  runtime: Runtime,
): Promise<void> {
  const sources = openSources(workspace, runtime);
  const queries = new QueryProcesses({
    options: optionsOf(options),
    cwd: runtime.workingDirectory,
    environment: withoutVariables(
      runtime.environment,
      secretNamesOfQueries(runtime.environment, workspace.settings),
    ),
    timeoutMs: LONGEST_QUERY_MS,
    dataDir: workspace.dataDir,
  });
  const asker = { client: 'assistant', signal: runtime.signal };
  const left = once(process.stdin, 'end', { signal: runtime.signal }).catch(() => undefined);
  const handle = serveStdio(() => mcpServer({ sources, queries, asker }), {
    onerror: ({ message }) => runtime.output.note(message),
  });
  await left;
  await handle.close();
  await queries.close();
  sources.history.close();
}

/** The server, which reads no secrets and writes nothing. */
function mcpServer(call: Call): McpServer {
  const instructions = `${words.instructions} ${words.notice}`;
  const server = new McpServer({ name: 'readership', version }, { instructions });
  for (const [name, tool] of Object.entries(TOOLS))
    server.registerTool(
      name,
      {
        ...words.tools[name],
        inputSchema: tool.input,
        outputSchema: tool.output,
        annotations: { title: words.tools[name]?.title, readOnlyHint: true, openWorldHint: false },
      },
      (input, context) => answered(tool, input, call, context),
    );
  for (const [name, { title, text }] of Object.entries(words.prompts))
    server.registerPrompt(name, { title, description: title }, () => ({
      messages: [{ role: 'user', content: { type: 'text', text } }],
    }));
  for (const [name, title] of Object.entries(words.resources)) {
    const uri = `readership://docs/${name}`;
    const mimeType = 'text/markdown';
    server.registerResource(name, uri, { title, mimeType }, async () => ({
      contents: [{ uri, mimeType, text: await readFile(packageFile(`docs/${name}.md`), 'utf8') }],
    }));
  }
  return server;
}

/** The answer of a tool, as data and as text. It ends when the assistant cancels it or leaves. */
async function answered(tool: Tool, input: unknown, call: Call, { mcpReq }: ServerContext) {
  const { client, signal: left } = call.asker;
  const asker = { client, signal: AbortSignal.any([mcpReq.signal, left]) };
  try {
    const found = await tool.answer(input, { ...call, asker });
    const structuredContent = fitted(tool.output.parse(JSON.parse(JSON.stringify(found, visibly))));
    const { report } = structuredContent;
    const texts = [typeof report === 'string' ? report : JSON.stringify(structuredContent), words.notice];
    return { structuredContent, content: texts.map((text) => ({ type: 'text' as const, text })) };
  } catch (error) {
    const { workspace } = call.sources;
    // Why there is no answer, without the directories of this machine.
    const why = asInvoked(withoutDirectories(workspace, messageOf(error)), workspace.invocation);
    return { content: [{ type: 'text' as const, text: escapeLines(why) }], isError: true };
  }
}

/** For `JSON.stringify`: writes every invisible character as an escape that can be seen. */
function visibly(_: string, value: unknown): unknown {
  if (typeof value === 'string') return escapeLines(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [escapeLines(name), inner]));
}
