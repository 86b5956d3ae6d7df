import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import ts from 'typescript';

/** A test program as JavaScript in a directory, using the output of `npm run build`. */
export async function compiled(program: URL, directory: string): Promise<string> {
  const source = await readFile(program, 'utf8');
  const modules = new URL('../build/', import.meta.url).href;
  const { outputText } = ts.transpileModule(source.replaceAll('../../src/', modules), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
  });
  const file = join(directory, basename(program.pathname).replace(/ts$/, 'mjs'));
  await writeFile(file, outputText);
  return file;
}
