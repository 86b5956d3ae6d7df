import { z } from 'zod';
import { LIMITS } from '../../api/schema.js';
import type { AgentJob } from '../../api/schema.js';
import { badRequest, bodyOf, type SandboxContext, tooMany, unacceptable } from '../http.js';
import type { Agency, Answer } from '../jobs/agency.js';

/** Create job, send message, get job (interface 4.1 to 4.3). */

const promptSchema = z.object(
  {
    prompt: z
      .string({ error: 'prompt must be a string' })
      .min(LIMITS.promptMin, { error: 'prompt must not be empty' }),
  },
  { error: 'the body must be a JSON object' },
);

const unknownJob = (c: SandboxContext): Response => c.json({ error: 'Job not found' }, 404);

function reply(c: SandboxContext, answer: Answer, status: 200 | 201): Response {
  switch (answer.kind) {
    case 'taken':
      return c.json<AgentJob>(answer.job, status);
    case 'unknown-job':
      return unknownJob(c);
    case 'rate-limited':
      return tooMany(c, answer.retryAfterSeconds);
  }
}

async function withPrompt(c: SandboxContext, handle: (prompt: string) => Response): Promise<Response> {
  const body = await bodyOf(c);
  if (body === undefined) return badRequest(c, ['the body is not JSON']);
  const parsed = promptSchema.safeParse(body);
  return parsed.success ? handle(parsed.data.prompt) : unacceptable(c, parsed.error);
}

export const createJob = (agency: Agency) => (c: SandboxContext) =>
  withPrompt(c, (prompt) => reply(c, agency.create(prompt), 201));

export const sendMessage = (agency: Agency) => (c: SandboxContext) =>
  withPrompt(c, (prompt) => reply(c, agency.message(c.req.param('id') ?? '', prompt), 200));

export const getJob = (agency: Agency) => (c: SandboxContext) => {
  const job = agency.get(c.req.param('id') ?? '');
  return job === undefined ? unknownJob(c) : c.json<AgentJob>(job);
};
