/** Answers by their questions. Failures are forgotten, and so are the oldest answers beyond `most`. */
export class Remembering<Answer> {
  readonly #answers = new Map<string, Promise<Answer>>();

  constructor(private readonly most: number) {}

  /** The answer that is known, or else what `work` finds out; kept unless it is not `worthKeeping`. */
  get(
    question: string,
    work: () => Promise<Answer>,
    worthKeeping: (answer: Answer) => boolean = () => true,
  ): Promise<Answer> {
    const known = this.#answers.get(question);
    if (known !== undefined) return known;
    const answer = work();
    this.#answers.set(question, answer);
    void answer
      .then(worthKeeping)
      .catch(() => false)
      .then((isKept) => isKept || this.#answers.delete(question));
    const [oldest] = this.#answers.size > this.most ? this.#answers.keys() : [];
    if (oldest !== undefined) this.#answers.delete(oldest);
    return answer;
  }
}
