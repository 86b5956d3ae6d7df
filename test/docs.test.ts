import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CommanderError } from 'commander';
import { commandLine } from '../src/commands/program.js';
import { templateFunctions } from '../src/reports/template-functions.js';
import { callCli } from './run-cli.js';

const ROOT = join(import.meta.dirname, '..');
const read = (file: string) => readFile(join(ROOT, file), 'utf8');

async function markdownFiles(): Promise<string[]> {
  const found = await readdir(join(ROOT, 'docs'), { recursive: true });
  const inDocs = found.filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`);
  return ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', ...inDocs];
}

const sourceCode = async (): Promise<string> => {
  const names = await readdir(join(ROOT, 'src'), { recursive: true });
  const files = names.filter((name) => name.endsWith('.ts')).map((name) => read(`src/${name}`));
  return (await Promise.all(files)).join('\n');
};

/**
 * The arguments of each `readership …` in shell blocks and inline code, without comments, and without what a shell
 * adds: variables, pipes and redirections. Names in capitals and `…` stand for values.
 */
function commandsIn(markdown: string): string[][] {
  const blocks = [...markdown.matchAll(/^ *```(?:sh|console)\n([^]+?)^ *```/gm)].map(([, text = '']) => text);
  const inline = [
    ...markdown.replaceAll(/^ *```[^]+?^ *```|^\| `[^`]+`/gm, '').matchAll(/`(readership [^`]+)`/g),
  ];
  const lines = [
    ...blocks.join('\n').replaceAll('\\\n', ' ').split('\n'),
    ...inline.map(([, text = '']) => text),
  ];
  return lines.flatMap((line) =>
    [...line.matchAll(/(?:^|[|&$(] ?|readership |=\S+ )readership ((?:"[^"]*"|'[^']*'|[^|>#&;"'])+)/g)].map(
      ([, words = '']) =>
        [...words.replaceAll(/\$\([^)]*\)/g, 'VALUE').matchAll(/"([^"]*)"|'([^']*)'|([^\s"')]+)/g)].map(
          ([, double, single, plain]) => double ?? single ?? plain ?? '',
        ),
    ),
  );
}

/** What the command line refuses about these arguments; nothing is run. */
async function refusal(args: readonly string[]): Promise<string | undefined> {
  const values = args.map((arg) => (arg === '…' ? '2026-11-09' : arg === 'ID' ? '3' : arg));
  const program = await commandLine(() => Promise.resolve(), values[0]);
  const ignore = () => undefined;
  const quiet = (command: typeof program): void => {
    command.configureOutput({ writeErr: ignore, writeOut: ignore });
    command.commands.forEach(quiet);
  };
  quiet(program);
  try {
    await program.parseAsync(values, { from: 'user' });
  } catch (error) {
    return error instanceof CommanderError && error.exitCode === 0 ? undefined : String(error);
  }
  return undefined;
}

describe('the documentation', () => {
  it('shows only commands, options and values that the command line takes', async () => {
    expect(await refusal(['export', '--form', '2026-11-09'])).toContain('unknown option');
    expect(await refusal(['sql', 'FROM', 'site_weeks'])).toContain("unexpected argument 'site_weeks'");
    const refused: string[] = [];
    let count = 0;
    for (const file of await markdownFiles()) {
      if (file === 'CHANGELOG.md' || file.startsWith('docs/decisions/')) continue;
      for (const args of commandsIn(await read(file))) {
        count += 1;
        const why = await refusal(args);
        if (why !== undefined) refused.push(`${file}: readership ${args.join(' ')}: ${why}`);
      }
    }
    expect(refused).toEqual([]);
    expect(count).toBeGreaterThan(100);
  });

  it('names every command that --help lists', async () => {
    const { stdout } = await callCli(['--help'], { cwd: ROOT });
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) (?:\[| {2})/gm)].map(([, name = '']) => name);
    expect(commands).toContain('export');
    const page = await read('docs/commands.md');
    for (const command of commands.filter((name) => name !== 'help'))
      expect(page).toContain(`| \`${command}\` `);
  });

  it('says why each dependency is there', async () => {
    const { dependencies, devDependencies } = JSON.parse(await read('package.json')) as Record<
      'dependencies' | 'devDependencies',
      Record<string, string>
    >;
    const code = await sourceCode();
    const bundled = Object.keys(devDependencies).filter((name) =>
      new RegExp(`(?:from |import\\()'${name}['/]`).test(code),
    );
    const guide = await read('CONTRIBUTING.md');
    const [, table = ''] = /^\| package .+\n\|[- |]+\n((?:\|.+\n)+)/m.exec(guide) ?? [];
    const rows = table.matchAll(/^\| (?<names>`[^|]+`) +\| (?<why>\S[^|]+)\|$/gm);
    const named = [...rows].flatMap(({ groups }) => groups?.['names']?.split(', ') ?? []);
    expect(named.sort()).toEqual(
      [...Object.keys(dependencies), ...bundled].map((name) => `\`${name}\``).sort(),
    );
  });

  it('names every template function', async () => {
    const [, section = ''] =
      /^## Template functions\n([\s\S]+?)^## /m.exec(await read('docs/reports.md')) ?? [];
    const named = [...section.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    expect(named.sort()).toEqual(Object.keys(templateFunctions).sort());
  });

  it('explains messages that the code has, and every line of status that needs attention', async () => {
    const code = await sourceCode();
    const runbook = await read('docs/runbook.md');
    const messages = [...runbook.matchAll(/^\| `([^`]+)` +\| \S.+ \| \S.+ \|$/gm)].map(
      ([, message = '']) => message,
    );
    expect(messages.length).toBeGreaterThan(40);
    const parts = messages.flatMap((message) => message.split('…'));
    expect(parts.filter((part) => !code.includes(part.trim()))).toEqual([]);
    const [, needs = ''] =
      /export function needsOf([^]+?)\n}\n/.exec(await read('src/print/status.ts')) ?? [];
    const lines = [...needs.matchAll(/`([^`]*\$\{[^`]*)`/g)].map(([, line = '']) => line);
    expect(lines.length).toBeGreaterThan(5);
    expect(lines.filter((line) => !messages.some((message) => line.includes(message)))).toEqual([]);
  });

  it('links only to existing files', async () => {
    for (const file of await markdownFiles()) {
      for (const [, link = ''] of (await read(file)).matchAll(/\]\((?!https?:|#)([^)#]+)/g))
        expect(existsSync(join(ROOT, dirname(file), link)), `${file} links to ${link}`).toBe(true);
    }
  });

  it('names only files of this repository that exist', async () => {
    for (const file of await markdownFiles()) {
      if (file === 'CHANGELOG.md') continue;
      for (const [path] of (await read(file)).matchAll(/\b(?:src|test|bench)\/[\w./-]*\w/g))
        expect(existsSync(join(ROOT, path)), `${file} names ${path}`).toBe(true);
    }
  });

  it('tests as CI does', async () => {
    expect(await read('README.md')).toMatch(/^npm ci && npm start\b.*\nnpm ci && npm test\b/m);
    expect(await read('.ci/run')).toMatch(/^npm test\b/m);
  });

  it('lists every decision', async () => {
    const index = await read('docs/decisions/README.md');
    const pages = (await readdir(join(ROOT, 'docs/decisions'))).filter((file) => /^\d/.test(file));
    for (const page of pages) expect(index).toContain(`(${page})`);
  });
});
