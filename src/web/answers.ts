import { LRUCache } from 'lru-cache';

/** What was requested, and what was done. */
interface Answer {
  readonly words: string;
  readonly answer: string;
}

const KEPT = 100;

/** The answers to the forms sent last, by digests of the forms. */
export class Answers {
  readonly #begun = new LRUCache<string, Promise<Answer>>({ max: KEPT });
  readonly #done = new LRUCache<string, Answer>({ max: KEPT });

  /** Does what a form requests; if it is sent twice, once. What fails may be tried again. */
  once(form: string, work: () => Promise<Answer>): Promise<Answer> {
    const begun = this.#begun.get(form);
    return begun ?? this.#begin(form, work);
  }

  of(form: string): Answer | undefined {
    return this.#done.get(form);
  }

  async #begin(form: string, work: () => Promise<Answer>): Promise<Answer> {
    const begun = work();
    this.#begun.set(form, begun);
    try {
      const answer = await begun;
      this.#done.set(form, answer);
      return answer;
    } catch (error) {
      this.#begun.delete(form);
      throw error;
    }
  }
}
