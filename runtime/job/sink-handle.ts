import type { StreamNode } from './stream-node.ts'

/** The end of a stream: gives the sink its uid, name, parallelism and place. */
export class SinkHandle {
  readonly #node: StreamNode

  constructor(node: StreamNode) {
    this.#node = node
  }

  /** Under which its pre-committed transactions are stored. 1 to 100 of A-Z a-z 0-9 . _ - */
  uid(uid: string): this {
    this.#node.options.uid = uid
    return this
  }

  /** For people: logs, metrics, the execution plan. */
  named(name: string): this {
    this.#node.options.name = name
    return this
  }

  parallelism(parallelism: number): this {
    this.#node.options.parallelism = parallelism
    return this
  }

  slotSharingGroup(group: string): this {
    this.#node.options.slotSharingGroup = group
    return this
  }

  disableChaining(): this {
    this.#node.options.chaining = false
    return this
  }
}
