import { type Fault, type FaultInput, faultSchema, type FaultOf, type Operation } from './schema.js';

/** What strikes one request: delays first, then at most one fault of another kind. */
export interface Struck {
  readonly delayMs: number;
  readonly fault: Exclude<Fault, FaultOf<'latency'>> | undefined;
}

/** Holds the faults in force and decides which strike a request. */
export interface Switchboard {
  /** Replaces all faults. Throws a `ZodError` for a fault that is none. */
  readonly set: (faults: readonly FaultInput[]) => void;
  /** Called once a request: counts it against every fault that is aimed at it. */
  readonly strike: (operation: Operation) => Struck;
  readonly list: () => readonly Fault[];
}

export function createSwitchboard(): Switchboard {
  let armed: { fault: Fault; seen: number; struck: number }[] = [];
  return {
    set: (faults) => {
      armed = faultSchema
        .array()
        .parse(faults)
        .map((fault) => ({ fault, seen: 0, struck: 0 }));
    },
    list: () => armed.map(({ fault }) => fault),
    strike: (operation) => {
      let delayMs = 0;
      let struck: Struck['fault'];
      for (const entry of armed) {
        const { fault } = entry;
        if (fault.on !== 'any' && fault.on !== operation) continue;
        entry.seen += 1;
        const due = entry.seen > fault.after && entry.struck < (fault.times ?? Infinity);
        if (!due || struck !== undefined) continue;
        entry.struck += 1;
        if (fault.kind === 'latency') delayMs += fault.delayMs;
        else struck = fault;
      }
      return { delayMs, fault: struck };
    },
  };
}
