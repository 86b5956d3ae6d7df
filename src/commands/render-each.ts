import type { ProjectSettings } from '../config/schema.js';
import { NothingLoadedError } from '../reports/nothing-loaded-error.js';
import type { RenderedReport } from '../reports/render.js';
import type { Output } from '../terminal/output.js';

interface Rendered {
  readonly project: ProjectSettings;
  readonly rendered: RenderedReport;
}

/**
 * Renders a report for one project after another. One that has nothing loaded for the period, as before its launch, is
 * noted, and holds up none of the others; when that is true of all, the first `NothingLoadedError` is thrown.
 */
export async function* renderEach(
  projects: readonly ProjectSettings[],
  render: (project: ProjectSettings) => Promise<RenderedReport>,
  output: Output,
): AsyncGenerator<Rendered> {
  const empty: NothingLoadedError[] = [];
  for (const project of projects) {
    let rendered;
    try {
      rendered = await render(project);
    } catch (error) {
      if (!(error instanceof NothingLoadedError)) throw error;
      empty.push(error);
      continue;
    }
    yield { project, rendered };
  }
  const [first] = empty;
  if (first !== undefined && empty.length === projects.length) throw first;
  for (const { message } of empty) output.note(message);
}
