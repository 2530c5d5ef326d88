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

  /** Subtasks of the sink. Default: the job's. */
  parallelism(parallelism: number): this {
    this.#node.options.parallelism = parallelism
    return this
  }

  /** Sinks and operators of one group may share slots; the default is the inputs' group, else 'default'. */
  slotSharingGroup(group: string): this {
    this.#node.options.slotSharingGroup = group
    return this
  }

  /** Runs in a task of its own, not joined to what it reads. */
  disableChaining(): this {
    this.#node.options.chaining = false
    return this
  }
}
