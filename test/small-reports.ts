import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const SMALL_REPORT = `title: Small
subject: '{{project.name}}, {{plainDayRange period}}'
audience: Tests
period: week
queries:
  views: { show: facts, columns: [human, ai] }
`;
const VIEWS = `-- Grain: one row.
SELECT sum(human) AS human, sum(ai) AS ai
FROM page_views
WHERE project = $project AND day BETWEEN $from AND $to
`;

/**
 * Puts small reports in the place of the built-in ones, which take most of the processor time of a run: for tests of
 * when emails are sent, and not of what they say.
 */
export async function useSmallReports(directory: string, names = ['weekly', 'improve']): Promise<string> {
  const templates = join(directory, 'templates');
  await mkdir(templates, { recursive: true });
  for (const name of names) {
    const report = join(directory, 'reports', name);
    await mkdir(report, { recursive: true });
    await writeFile(join(report, 'report.yaml'), SMALL_REPORT);
    await writeFile(join(report, 'views.sql'), VIEWS);
    for (const form of ['html', 'text'])
      await cp(`templates/report.${form}.hbs`, join(templates, `${name}.${form}.hbs`));
  }
  return directory;
}
