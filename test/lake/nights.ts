import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { addDays, type Day, day } from '../../src/day.js';
import { publishDataset } from '../../src/warehouse/dataset/dataset.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { page, storeLoaded } from '../warehouse/stored-days.js';

const FIRST_DAY = day('2026-09-20');
/** How many days are loaded before the first night. */
const BACKFILL_DAYS = 60;
const PAGES = 25;

/** A project, and the nights in which it is in the configuration. Its history stays after that. */
interface Project {
  readonly id: string;
  readonly from: number;
  readonly until: number;
}

const always = (id: string): Project => ({ id, from: 0, until: Infinity });

/** The projects of each workspace. One begins later, one ends, and some ids must be escaped. */
export const WORKSPACES: readonly (readonly Project[])[] = [
  [always('prj_1'), always('acme/docs 100%'), { id: '007', from: 12, until: Infinity }],
  [always('ünï🦆'), { id: 'prj_old', from: 0, until: 20 }, { id: 'prj_new', from: 25, until: Infinity }],
];

type Random = (below: number) => number;

/** Numbers that look random, and are the same in each run. */
function numbersFrom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A workspace that loads days night after night, as exports do. */
export class SimulatedWorkspace {
  #projects: readonly Project[] = [];

  private constructor(
    readonly warehouse: Warehouse,
    private readonly index: number,
  ) {}

  /** Opens one of the workspaces, with its database in a directory of its own. */
  static async open(directory: string, index: number): Promise<SimulatedWorkspace> {
    const path = join(directory, `data-${index}`, 'warehouse.duckdb');
    await mkdir(dirname(path), { recursive: true });
    const warehouse = await openWarehouse(path, { command: 'test', now: () => new Date(), maxWaitMs: 0 });
    await warehouse.transaction((transaction) => transaction.execute(TAKE_ID, { id: `workspace-${index}` }));
    return new SimulatedWorkspace(warehouse, index);
  }

  /** Loads the day that has ended, those before it again, as late data arrives, and now and then an old one. */
  async load(night: number): Promise<void> {
    const today = addDays(FIRST_DAY, BACKFILL_DAYS + night);
    const random = numbersFrom(1_000 * this.index + night);
    this.#projects = (WORKSPACES[this.index] ?? []).filter(
      ({ from, until }) => from <= night && night < until,
    );
    for (const { id, from } of this.#projects) {
      if (night === from)
        for (let back = BACKFILL_DAYS; back > 3; back--)
          if (back % 8 > 0) await this.#store(id, addDays(today, -back), night, random);
      for (const back of [3, 2, 1]) await this.#store(id, addDays(today, -back), night, random);
      if (random(4) === 0) await this.#store(id, addDays(today, -4 - random(50)), night, random);
    }
  }

  /** Stores a day, sometimes with the numbers of before, sometimes without a view. */
  async #store(project: string, at: Day, night: number, random: Random): Promise<void> {
    const isEmpty = random(12) === 0;
    const now = new Date(Date.parse(FIRST_DAY) + (BACKFILL_DAYS + night) * 86_400_000 + 7_200_000);
    const variant = random(2);
    const views = numbersFrom(Date.parse(at) / 86_400_000 + variant);
    const rows = Array.from({ length: isEmpty ? 0 : PAGES }, (_, index) =>
      page(`/docs/ü's page ${index}`, views(90), views(70)),
    );
    await storeLoaded(this.warehouse, { project, day: at, now }, rows, 'final');
  }

  publish(location: string, environment: Readonly<Record<string, string>>) {
    const signal = new AbortController().signal;
    return publishDataset(this.warehouse, {
      place: { location, environment },
      projects: this.#projects,
      signal,
    });
  }

  /** A digest of the rows in each folder that the history makes, in the form of `digests` in engines.py. */
  async digests(): Promise<Record<string, string>> {
    const rows = await this.warehouse.query(DIGESTS, z.object({ folder: z.string(), digest: z.string() }));
    return Object.fromEntries(rows.map(({ folder, digest }) => [folder, digest]));
  }

  close(): Promise<void> {
    return this.warehouse.close();
  }
}

const TAKE_ID = 'INSERT INTO workspace (id) SELECT $id WHERE NOT EXISTS (FROM workspace)';

const DIGESTS = `
  SELECT folder, md5(string_agg(line, chr(10) ORDER BY line)) AS digest
  FROM (
    SELECT concat_ws(' ', 'views', project, strftime(day, '%Y-%m')) AS folder, concat_ws('|', day, path, page, human, ai, total) AS line
    FROM page_views
    UNION ALL
    SELECT concat_ws(' ', 'days', project), concat_ws('|', day, state, epoch_ms(loaded_at), human, ai, total, pages)
    FROM day_loads
    WHERE loaded_at IS NOT NULL
  )
  GROUP BY folder`;
