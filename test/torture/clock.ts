/**
 * A separate clock for each trial, which runs faster than the real one, so that a pause of half a minute takes seconds,
 * and is set forward between two commands. The commands share it: see `preload.ts`.
 */

/** The moment `originSimulatedMs` was at `originRealMs`; from there it runs `rate` times as fast. */
export interface ClockSetting {
  readonly originRealMs: number;
  readonly originSimulatedMs: number;
  readonly rate: number;
}

/** High enough that waits are short, low enough that a hiccup of a busy machine stays within the budget's slack. */
const RATE = 8;

export class Clock {
  #setting: ClockSetting;

  constructor(start: Date) {
    this.#setting = { originRealMs: Date.now(), originSimulatedMs: start.getTime(), rate: RATE };
  }

  readonly now = (): Date => {
    const { originRealMs, originSimulatedMs, rate } = this.#setting;
    return new Date(originSimulatedMs + (Date.now() - originRealMs) * rate);
  };

  advance(ms: number): void {
    const { originSimulatedMs } = this.#setting;
    this.#setting = { ...this.#setting, originSimulatedMs: originSimulatedMs + ms };
  }

  /** The clock of a command that is `behindMs` behind. */
  settingBehind(behindMs: number): ClockSetting {
    return { ...this.#setting, originSimulatedMs: this.#setting.originSimulatedMs - behindMs };
  }
}
