import { createMcpHandler, McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { placeless } from '../app/workspace.js';
import { messageOf } from '../errors.js';
import { packageFile, version } from '../files.js';
import { asInvoked } from '../format/advice.js';
import { escapeLines } from '../format/text.js';
import { readSql } from '../warehouse/query.js';
import type { Asker } from './questions.js';
import type { Sources } from './request.js';
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

/** A Model Context Protocol server over the published history, for one client. It reads no secrets and writes nothing. */
export function mcpServer(sources: Sources, asker: Asker): McpServer {
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
      (input, context) => answered(tool, input, { ...asker, sources }, context),
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

/** The same over HTTP: stateless, so each request is answered on its own. */
export const answerMcp = (request: Request, sources: Sources, asker: Asker): Promise<Response> =>
  createMcpHandler(() => mcpServer(sources, asker), { maxRequestBodySize: 64 * 1024 }).fetch(request);

/** The answer of a tool, as data and as text. It ends when the assistant cancels it or leaves. */
async function answered(tool: Tool, input: unknown, call: Call, { mcpReq }: ServerContext) {
  const signal = AbortSignal.any([mcpReq.signal, call.signal]);
  try {
    const found = await tool.answer(input, { ...call, signal });
    const structuredContent = fitted(tool.output.parse(JSON.parse(JSON.stringify(found, visibly))));
    const { report } = structuredContent;
    const texts = [typeof report === 'string' ? report : JSON.stringify(structuredContent), words.notice];
    return { structuredContent, content: texts.map((text) => ({ type: 'text' as const, text })) };
  } catch (error) {
    const { workspace } = call.sources;
    // Why there is no answer, without the directories of this machine.
    const why = asInvoked(placeless(workspace, messageOf(error)), workspace.invocation);
    return { content: [{ type: 'text' as const, text: escapeLines(why) }], isError: true };
  }
}

/** For `JSON.stringify`: writes every invisible character as an escape that can be seen. */
function visibly(_: string, value: unknown): unknown {
  if (typeof value === 'string') return escapeLines(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [escapeLines(name), inner]));
}
