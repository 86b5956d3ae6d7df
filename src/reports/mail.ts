import type { Answers } from './answers.js';
import type { ReportDefinition } from './catalog.js';
import { draw } from './draw.js';
import type { Palette } from './palette.js';
import { fillLine, fillTemplate, type Templates } from './templates.js';

/** A report as the body of a mail. How it is sent, and to whom, is not known here. */
export interface ReportMail {
  readonly subject: string;
  /** What mail readers show beside the subject in their list. It is in `html` already. */
  readonly preheader: string;
  /** With all CSS inlined; pictures are named by `cid:`. */
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly MailPicture[];
}

interface MailPicture {
  /** Without the angle brackets of the Content-ID header. */
  readonly cid: string;
  /** Opaque, at twice `width`. */
  readonly png: Uint8Array;
  /** In CSS pixels. */
  readonly width: number;
  /** The data in words, for readers who see no pictures. */
  readonly alt: string;
}

/** Pixels of a picture for each pixel of the mail: sharp on the screens of phones. */
const DENSITY = 2;

/** Pictures are drawn smaller and enlarged: their text is still read on a phone, which shows them at two thirds. */
const ENLARGED = 1.25;

/** Composes the mail of a report: the same model as the page, in tables that hold in old mail readers. */
export async function composeMail(
  report: ReportDefinition,
  answers: Answers,
  templates: Templates,
  palette: Palette,
  model: { readonly subject: string; readonly text: string },
): Promise<ReportMail> {
  const { subject, text } = model;
  // Who only wants the page does not pay for loading what only mails need.
  const [{ inline }, { rasterise }] = await Promise.all([
    import('@css-inline/css-inline'),
    import('./rasterise.js'),
  ]);
  const pictures: Record<string, MailPicture> = {};
  for (const picture of report.pictures) {
    if (picture.mail === undefined) continue;
    const { width, alt } = picture.mail;
    const drawn = { ...picture, widths: [Math.round(width / ENLARGED)] };
    const [drawing] = await draw(drawn, [answers[picture.query] ?? []].flat());
    if (drawing === undefined) continue;
    pictures[picture.name] = {
      cid: `${report.name}.${picture.name}@readership`,
      png: rasterise(drawing.svg, DENSITY * width, palette.light),
      width,
      alt: fillLine(report.name, `pictures.${picture.name}.mail.alt`, alt, model),
    };
  }
  const preheader = fillLine(report.name, 'preheader', report.preheader, model);
  const filled = fillTemplate(report.name, 'mail', templates, { ...model, pictures, preheader });
  const html = inline(filled, {
    keepAtRules: true,
    removeInlinedSelectors: true,
    loadRemoteStylesheets: false,
  });
  return { subject, preheader, html, text, pictures: Object.values(pictures) };
}
