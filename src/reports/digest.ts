import { plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import type { NothingLoadedError } from './coverage.js';
import {
  formsOf,
  type PreparedReport,
  type ReportedProject,
  type ReportPlace,
  type ReportRequest,
} from './render.js';

/**
 * Reports about several projects as one email, the largest news first: its headline is the subject. Then come the projects
 * with nothing loaded for the period.
 */
export async function digestOf(
  place: ReportPlace,
  { report: { title }, period, cautions = [], unsent = [] }: ReportRequest,
  reports: readonly PreparedReport[],
  empty: readonly { readonly item: ReportedProject; readonly error: NothingLoadedError }[],
) {
  const stakeOf = ({ model }: PreparedReport): number => ('stake' in model ? model.stake : 0);
  const editions = reports
    .toSorted((one, two) => stakeOf(two) - stakeOf(one))
    .map(({ news, preheader, pageUrl }) => ({ news: news(), preheader, pageUrl }));
  const [first] = editions;
  const without = empty.map(({ item: { id, name }, error: { history } }) => ({ id, name, history }));
  const more = editions.length + without.length - 1;
  const others = more === 0 ? '' : `; ${counted(more, 'more project')}`;
  const subject = `${title}, ${plainDayRange(period)}: ${first?.news ?? ''}${others}`;
  const { serve } = place.settings;
  const pageUrl = serve?.url === undefined ? null : `${serve.url}/reports`;
  const heading = { subject, preheader: first?.preheader ?? '', pageUrl };
  const shown = {
    period,
    cautions,
    unsent: unsent.map((range) => ({ range, page: pageUrl })),
    editions,
    without,
    others: more,
    report: { title },
  };
  const { chat, email } = await formsOf(place, 'digest', heading, () => shown);
  const model = { projects: reports.map(({ model }) => model), without };
  return { subject, pageUrl, model, chat, email };
}
