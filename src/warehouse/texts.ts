import { DuckDBDataChunk, VARCHAR } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';

/** The most rows that a DuckDB vector holds. */
export const CHUNK_ROWS = 2048;

/** The 4-byte words of DuckDB's `duckdb_string_t`: the length, and the text itself or its start and address. */
const STRING_WORDS = 4;
const CHUNK_WORDS = CHUNK_ROWS * STRING_WORDS;

/**
 * Texts that are stored in many rows, numbered in order of arrival. Each is kept once and passed to
 * DuckDB once, and its rows get copies of the same `duckdb_string_t`, which are valid as long as this object.
 */
export class Texts {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  /** Own the texts that were passed to DuckDB. All but the last are full. */
  readonly #chunks: DuckDBDataChunk[] = [];
  #passed = 0;
  /** The words of the texts that were passed. */
  #words = new Int32Array(CHUNK_WORDS);

  get size(): number {
    return this.#texts.length;
  }

  numberOf(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) this.#numbers.set(text, (number = this.#texts.push(text) - 1));
    return number;
  }

  textOf(number: number): string {
    return this.#texts[number] ?? '';
  }

  /** What a vector contains for the texts with these numbers. */
  wordsOf(numbers: Int32Array): Int32Array<ArrayBuffer> {
    while (this.#passed < this.#texts.length) this.#passNext();
    const words = new Int32Array(STRING_WORDS * numbers.length);
    let at = 0;
    for (const number of numbers) {
      const from = STRING_WORDS * number;
      for (let word = from; word < from + STRING_WORDS; word++) words[at++] = this.#words[word] ?? 0;
    }
    return words;
  }

  /** Passes new texts to DuckDB, as many as the last chunk has room for. */
  #passNext(): void {
    const place = this.#passed % CHUNK_ROWS;
    const chunk = (place > 0 ? this.#chunks.at(-1) : undefined) ?? this.#newChunk();
    const vector = duckdb.data_chunk_get_vector(chunk.chunk, 0);
    const texts = this.#texts.slice(this.#passed, this.#passed + CHUNK_ROWS - place);
    for (const [index, text] of texts.entries())
      duckdb.vector_assign_string_element(vector, place + index, text);
    const { buffer, byteOffset } = duckdb.vector_get_data(vector, CHUNK_WORDS * Int32Array.BYTES_PER_ELEMENT);
    const start = (this.#chunks.length - 1) * CHUNK_WORDS;
    if (start === this.#words.length) {
      const longer = new Int32Array(2 * start);
      longer.set(this.#words);
      this.#words = longer;
    }
    this.#words.set(new Int32Array(buffer, byteOffset, CHUNK_WORDS), start);
    this.#passed += texts.length;
  }

  #newChunk(): DuckDBDataChunk {
    const chunk = DuckDBDataChunk.create([VARCHAR], CHUNK_ROWS);
    this.#chunks.push(chunk);
    return chunk;
  }
}
