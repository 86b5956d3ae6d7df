import { parseDocument } from 'yaml';
import { z } from 'zod';

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_]*$/, 'expected a name of small letters, digits and underscores');

const width = z.number().int().min(200).max(2000);

/** What `report.yaml` may say. Every query is a `.sql` file beside it, every picture a `.vl.json` file. */
const reportFile = z
  .strictObject({
    title: z.string().min(1),
    /** A template of one line over the report's model. */
    subject: z.string().min(1),
    /** A template of one line: what mail readers show beside the subject. */
    preheader: z.string().default(''),
    audience: z.string().min(1),
    period: z.enum(['week', 'month', 'day']),
    /** The built-in model that the rows are made into; without one, the template sees the rows as they are. */
    model: z.enum(['weekly', 'improve']).optional(),
    /** Whether a query gives one row, always, or any number. */
    queries: z.record(name, z.enum(['one', 'many'])),
    pictures: z
      .record(
        name,
        z.strictObject({
          query: name,
          title: z.string().min(1),
          /** In pixels. The page shows the one that fits the reader's screen. */
          widths: z.array(width).min(1).max(4),
          /** For a picture that the mail shows too: its width there, and a template of one line that says what it shows. */
          mail: z.strictObject({ width: width.max(552), alt: z.string().min(1) }).optional(),
        }),
      )
      .default({}),
  })
  .superRefine((report, context) => {
    for (const [picture, { query }] of Object.entries(report.pictures)) {
      if (report.queries[query] === undefined) {
        const message = `there is no query ${query}`;
        context.addIssue({ code: 'custom', path: ['pictures', picture, 'query'], message });
      }
    }
  });

export type ReportFile = z.infer<typeof reportFile>;

/** Reads a `report.yaml`: what it says, or every fault found in it. */
export function parseReportFile(text: string): { report: ReportFile } | { faults: string[] } {
  const document = parseDocument(text, { prettyErrors: true });
  if (document.errors.length > 0) return { faults: document.errors.map(({ message }) => firstLine(message)) };
  const parsed = reportFile.safeParse(document.toJS());
  if (parsed.success) return { report: parsed.data };
  return {
    faults: parsed.error.issues.map(({ path, message }) =>
      path.length === 0 ? message : `${path.join('.')}: ${message}`,
    ),
  };
}

const firstLine = (text: string): string => text.split('\n', 1)[0]?.replace(/:$/, '') ?? text;
