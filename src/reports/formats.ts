import { ConfigurationError } from '../errors.js';
import type { RenderedReport } from './render.js';

/** How a report can be shown without being sent. All are filled from one model. */
export const FORMATS = ['html', 'text', 'json'] as const;

export type Format = (typeof FORMATS)[number];

/** A rendered report in one of the formats. Throws a `ConfigurationError` when it has no template for it. */
export function inFormat(report: RenderedReport, format: Format): string {
  switch (format) {
    case 'html':
      return report.html;
    case 'text':
      if (report.text !== null) return report.text;
      throw new ConfigurationError(
        `The report ${report.name} has no template for plain text: add templates/${report.name}.text.hbs`,
      );
    case 'json':
      return JSON.stringify({ report: report.name, subject: report.subject, ...report.model }, null, 2);
  }
}
