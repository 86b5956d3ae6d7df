import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { z } from 'zod';

const HERE = import.meta.dirname;

/** A Python environment with the engines, and the S3 server moto. */
export interface Python {
  readonly venv: string;
  readonly environment: Record<string, string | undefined>;
}

/** Installs the packages of a file of requirements next to this one. */
export function install({ venv, environment }: Python, files: readonly string[]): void {
  if (!existsSync(join(venv, 'bin/python'))) run('python3', ['-m', 'venv', venv], environment);
  const named = files.flatMap((file) => ['--requirement', join(HERE, file)]);
  const quietly = ['install', '--quiet', '--disable-pip-version-check'];
  run(join(venv, 'bin/pip'), [...quietly, ...named], environment);
}

export function run(command: string, values: readonly string[], env: Python['environment']): string {
  const { status, stdout, stderr } = spawnSync(command, values, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${command} ${values.join(' ')} failed:\n${stderr.slice(-3000)}`);
  return stdout;
}

function startPython({ venv, environment }: Python, cwd: string, values: readonly string[]) {
  // ClickHouse reads no file outside the directory it was started in.
  const options = { env: environment, cwd };
  const child = spawn(join(venv, 'bin/python'), [join(HERE, 'engines.py'), ...values], options);
  // A write to a process that has ended is reported by the next read.
  child.stdin.on('error', () => undefined);
  return child;
}

/** The digest of the rows in each folder, as an engine reads them. */
const digestsForm = z.record(z.string(), z.string());
export type Digests = z.infer<typeof digestsForm>;

/** All engines in one process, which keeps them warm. */
export function startEngines(python: Python, cwd: string, isWithSpark: boolean) {
  const child = startPython(python, cwd, ['ask', ...(isWithSpark ? ['--spark'] : [])]);
  child.stderr.resume();
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async <Answer>(question: Record<string, string>, form: z.ZodType<Answer>): Promise<Answer> => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value = '', done } = (await lines.next()) as IteratorResult<string, undefined>;
    if (done === true) throw new Error(`the engines ended at ${JSON.stringify(question)}`);
    const said = z
      .object({ answer: z.unknown().optional(), error: z.string().optional() })
      .parse(JSON.parse(value));
    if (said.error !== undefined) throw new Error(`${JSON.stringify(question)}: ${said.error}`);
    return form.parse(said.answer);
  };
  return {
    read: (place: string) => ask({ ask: 'read', place }, z.record(z.string(), digestsForm)),
    sql: (engine: string, sql: string) =>
      ask({ ask: 'sql', engine, sql }, z.array(z.array(z.union([z.string(), z.number(), z.null()])))),
    close: () => child.stdin.end(),
  };
}

const watchedForm = z.object({
  reads: z.int(),
  states: z.array(z.tuple([z.string(), z.string()])),
  errors: z.array(z.string()),
});

/** How a process ends: its exit code, or the signal that ended it. */
const ended = async (child: ChildProcess) =>
  z.array(z.union([z.string(), z.int(), z.null()])).parse(await once(child, 'close'));

/** An engine that reads a dataset again and again, in a process of its own, until it is asked what it saw. */
export function startWatcher(python: Python, cwd: string, engine: string, place: string) {
  const child = startPython(python, cwd, ['watch', engine, place]);
  const said = Promise.all([text(child.stdout), text(child.stderr), ended(child)]);
  return {
    engine,
    place,
    async finish(): Promise<z.infer<typeof watchedForm>> {
      child.stdin.end();
      const [answer, errors, [code, signal]] = await said;
      assert.equal(code, 0, `${engine} ended with ${code ?? signal}:\n${errors.slice(-3000)}`);
      return watchedForm.parse(JSON.parse(answer));
    },
  };
}
