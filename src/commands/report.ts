import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf, StorageError } from '../errors.js';
import { exists, makeDirectories, packageFile, searchedDirs, formatOf } from '../files.js';
import { inTitle } from '../format/text.js';
import { listReports } from '../reports/definition.js';
import {
  projectCommand,
  simpleCommand,
  workspaceCommand,
  EMAIL_ENVIRONMENT,
  flag,
  flagNamed,
  value,
} from './command.js';
import { FORMATS, renderReport, type ReportOptions, watchReport } from './report-render.js';

const FORMAT_OF: Readonly<Record<string, ReportOptions['format']>> = {
  '': 'html',
  '.html': 'html',
  '.txt': 'text',
  '.json': 'json',
};

const NAMES =
  'a report can be written as .html, .txt or .json, or name its --format. For a PDF, print the page from a browser.';

const NAME = value('<name>', 'the report, such as weekly');
const PERIOD = value(
  '<period>',
  'an ISO week such as 2026-W46, a month such as 2026-11, or a day in it (default: the last period that has ended)',
);

const show = projectCommand('show', {
  isDefault: true,
  summary: 'render a report; "show" can be left out',
  description:
    'Renders a report from the history: as an HTML page in data/reports/, or as text or JSON to stdout; with --output, to that file instead.',
  arguments: [value<string | undefined>('[name]', 'the report, such as weekly (without one: list them)')],
  options: {
    period: PERIOD,
    format: value(
      '<format>',
      'html writes a page; text and json go to stdout (default: from the name of --output, else html)',
      { choices: FORMATS },
    ),
    open: flag('open the page in the browser'),
    watch: flag('render again whenever a file of the report or a template changes'),
    output: value('<file>', 'write to this file, in any format'),
  },
  examples: `
  readership report show weekly --open
  readership report weekly --open       the same
  readership report weekly --period 2026-W46
  readership report weekly --format json | jq .human
  readership report weekly --output weekly.html
  readership report sections --watch --open`,
  endsByInterruption: ({ watch }) => watch === true,
  run: (given, runtime, name) => {
    if (name === undefined) {
      refuse(given, 'without a report', ['period', 'format', 'output', 'open', 'watch']);
      return listAll(given, runtime);
    }
    const options = { ...given, format: given.format ?? formatOf(given.output ?? '', FORMAT_OF, NAMES) };
    if (options.format !== 'html') refuse(given, `with --format ${options.format}`, ['open']);
    return given.watch === true ? watchReport(name, options, runtime) : renderReport(name, options, runtime);
  },
});

const list = workspaceCommand('list', {
  description: 'List the built-in reports and your own.',
  examples: `
  readership report list`,
  run: (options, runtime) => listAll(options, runtime),
});

const send = projectCommand('send', {
  description: 'Email a report from the history to the configured recipients who have not received it.',
  arguments: [NAME],
  options: {
    period: PERIOD,
    force: flag('also to recipients who received it or may have received it'),
    to: value('<recipient>', 'only to this address or channel, also to an address that is not configured'),
  },
  examples: `
  readership report send weekly
  readership report send weekly --to me@example.com   (only to yourself)
  readership report send weekly --to docs-chat        (to a channel)`,
  environment: EMAIL_ENVIRONMENT,
  // Loaded on demand, because rendering needs none of it.
  run: async (options, runtime, name) =>
    (await import('./report-emails.js')).sendReport(name, options, runtime),
});

const resolve = projectCommand('resolve', {
  description: 'Record whether an email or post with an unknown outcome arrived, after asking its recipient.',
  arguments: [NAME],
  options: {
    period: PERIOD,
    delivered: value<string>('<recipient>', 'it arrived: never send it again', {
      conflicts: ['notDelivered'],
    }),
    notDelivered: value('<recipient>', 'it did not arrive: send it again when it is next due'),
  },
  examples: `
  readership report resolve weekly --period 2026-W46 --delivered ann@example.com`,
  run: async (options, runtime, name) =>
    (await import('./report-emails.js')).resolveDelivery(name, options, runtime),
});

const newCommand = workspaceCommand('new', {
  summary: 'write a report of your own: one query and five lines of YAML',
  description: 'Writes reports/NAME/ next to the configuration: report.yaml and one query, for you to edit.',
  arguments: [value('<name>', 'its name, such as busy_pages')],
  examples: `
  readership report new sections`,
  run: (options, runtime, name) => newReport(name, options, runtime),
});

export const report = simpleCommand('report', {
  summary: 'render a report, email it, or write your own',
  description:
    'Renders, lists and emails reports, resolves emails with an unknown outcome, and starts a report of your own.',
  subcommands: [show, list, send, resolve, newCommand],
  examples: `
  readership report                     list the reports
  readership report weekly --open       render one and open it in the browser
  readership report send weekly         email it to its recipients, once each
  readership report resolve weekly --period 2026-W46 --delivered ann@example.com
  readership report new sections        start a report of your own`,
});

/** Rejects options without effect, which point to a misunderstanding. */
function refuse(given: object, when: string, options: readonly string[]): void {
  const found = options.find((option) => option in given);
  if (found === undefined) return;
  throw new ConfigurationError(
    `${flagNamed(found)} has no effect ${when}. Nothing was done. Omit it, or see --help.`,
  );
}

/** Lists the working reports, and the problems of the others. */
async function listAll(options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, workingDirectory } = runtime;
  // Loaded on demand, because only this list measures widths.
  const { alignedLines } = await import('../terminal/table.js');
  const { workspaceDir } = await readWorkspace(options, runtime, 'none');
  const { reports, broken } = await listReports(workspaceDir);
  const rows = reports.map(({ name, title, period, audience, isBuiltIn, folder }) => {
    const origin = isBuiltIn ? 'built in' : relative(workingDirectory, folder);
    return [name, title, period === 'day' ? 'daily' : `${period}ly`, audience, origin];
  });
  const columns = Array.from({ length: 5 }, () => ({ head: '', align: 'left' as const }));
  for (const line of alignedLines(columns, rows, Infinity).slice(1)) output.data(line);
  for (const error of broken) output.note(error.message);
  return broken.length > 0 ? 2 : 0;
}

const FILES = packageFile('templates/workspace/report/');

/** Writes a new report that works as is. Replaces nothing. */
async function newReport(name: string, options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, workingDirectory } = runtime;
  const { workspaceDir } = await readWorkspace(options, runtime, 'none');
  if (workspaceDir === undefined)
    throw new ConfigurationError(
      'The sandbox cannot have reports of your own: run readership init, and then readership report new without --sandbox.',
    );
  // The excluded names mean something else: after `report` or `report resolve`, or below `reports`.
  if (!/^(?!(?:alert|help|new|resolve|send|timezone)$)[a-z][a-z0-9_-]*$/.test(name))
    throw new ConfigurationError(
      `“${name}” is not a valid report name: use lowercase letters, digits, hyphens and underscores, such as busy-pages, and no word that Readership uses.`,
    );
  const folder = join(workspaceDir, 'reports', name);
  // A new folder with the name of a built-in report would replace it.
  for (const taken of searchedDirs(workspaceDir).map((dir) => join(dir, 'reports', name)))
    if (await exists(taken))
      throw new ConfigurationError(
        `${relative(workingDirectory, taken)} already exists. Nothing was changed.`,
      );
  try {
    makeDirectories(folder);
    for (const file of (await readdir(FILES)).sort()) {
      const text = await readFile(join(FILES, file), 'utf8');
      const written = join(folder, file.replaceAll('NAME', name));
      await writeFile(written, text.replace('TITLE', inTitle(name)).replaceAll('NAME', name));
      output.data(relative(workingDirectory, written));
    }
  } catch (cause) {
    // Half a report would fail every run.
    await rm(folder, { recursive: true, force: true });
    throw new StorageError(`Cannot write the report to ${folder}: ${messageOf(cause)}`, { cause });
  }
  output.note(`To see it while you edit it: readership report ${name} --watch --open`);
  output.note(`To email it, add recipients to the configuration: reports.${name}.to`);
  return 0;
}
