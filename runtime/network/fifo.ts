/** A queue whose head is taken in constant time; Array.shift moves everything behind it. */
export class Fifo<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  get first(): T | undefined {
    return this.#items[this.#head]
  }

  replaceFirst(item: T): void {
    this.#items[this.#head] = item
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head] = undefined as T
    this.#head++
    if (this.#head === this.#items.length) this.clear()
    else if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  clear(): void {
    this.#items.length = 0
    this.#head = 0
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let index = this.#head; index < this.#items.length; index++) yield this.#items[index]!
  }
}
