import { z } from 'zod';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import type { PublishedReader } from './history.js';
import type { Asker } from './questions.js';
import type { Sources } from './sources.js';

/** Who calls a tool, and what it answers from. */
export interface Call extends Asker {
  readonly sources: Sources;
}

export interface Tool {
  readonly input: z.ZodObject;
  /** What an answer has beyond this is left out. */
  readonly output: z.ZodObject;
  readonly answer: (input: unknown, call: Call) => Promise<object>;
}

export const tool = <Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (input: z.output<z.ZodObject<Input>>, call: Call) => Promise<object>,
): Tool => {
  const input = z.object(inputs);
  return { input, output: z.object(outputs), answer: (given, call) => answer(input.parse(given), call) };
};

/** Works with the history of a project: the one with this id, or the only one. Throws a `ConfigurationError`. */
export function withProject<Result>(
  { sources, ...asker }: Call,
  id: string | undefined,
  work: (reader: PublishedReader, project: ProjectSettings) => Promise<Result>,
): Promise<Result> {
  const { projects } = sources.workspace;
  const found =
    id === undefined && projects.length === 1 ? projects[0] : projects.find((one) => one.id === id);
  if (found === undefined)
    throw new ConfigurationError(`Name the project: ${projects.map((one) => one.id).join(', ')}.`);
  return sources.histories.of(found.id).with(asker, (reader) => work(reader, found));
}

export const project = z.string().optional().describe('project id; required if there are several');
export const text = z.string();
export const textOrNull = text.nullable();
export const list = <Fields extends z.ZodRawShape>(fields: Fields) => z.array(z.object(fields));
export const pathOrUrl = z.string().max(4_000).describe('a path such as /quickstart, or the full URL');
