import { problemOf } from '../config/problems.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import type { Answers } from './answers.js';
import type { ModelContext } from './coverage.js';
import type { ReportDefinition } from './definition.js';
import { improveModel } from './improve.js';
import { weeklyModel } from './weekly/model.js';

/** Turns query results into sentences and figures, for templates that show more than rows. */
type Model = (answers: Answers, context: ModelContext) => object;

const MODELS = new Map<string, Model>([
  ['weekly', weeklyModel],
  ['improve', improveModel],
]);

/** What templates get besides the project and period: the report's model, or else its rows. */
export function modelOf(report: ReportDefinition, answers: Answers, context: ModelContext): object {
  if (report.model === undefined) return { rows: answers };
  const model = MODELS.get(report.model);
  if (model === undefined)
    throw new ConfigurationError(
      `${report.folder}/report.yaml: there is no model “${report.model}”; there are ${[...MODELS.keys()].join(', ')}`,
    );
  try {
    return model(answers, context);
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw new ConfigurationError(
      `${report.folder}: the queries do not return what the ${report.model} model needs: ${problemOf(cause)}`,
      { cause },
    );
  }
}
