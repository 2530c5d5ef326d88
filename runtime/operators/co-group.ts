// Windows over two streams: a window operator whose contents know which stream a record came from.

import type { DueTimer } from '../state/contract.ts'
import { CoGroupContents } from './co-group-contents.ts'
import type { CoGroupResults } from './co-group-contents.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { windowWork } from './window-work.ts'
import type { WindowWork, WindowWorkSettings } from './window-work.ts'

export interface CoGroupSettings extends Pick<WindowWorkSettings, 'assigner' | 'trigger' | 'allowedLatenessMs'> {
  /** Of the two lists that a window keeps. */
  readonly type: WindowWorkSettings['contents']['type']
  readonly results: CoGroupResults
  /** Side outputs of records too late for all their windows; undefined: they are counted and dropped. */
  readonly lateTags: { readonly left: string | undefined; readonly right: string | undefined }
}

/** As windowWork, for two inputs. */
export function coGroupWork(settings: CoGroupSettings): WindowWork {
  // What does not go together is refused with the name that the job gave.
  const { states, timerMeaning } = operatorParts(settings, anyTagOf(settings))
  return { create: () => new CoGroupOperator(settings), states, timerMeaning }
}

/** Between this operator and the one within: a name that no tag of a job has. */
const LATE = '\u0000late'

function anyTagOf({ lateTags }: CoGroupSettings): string | undefined {
  return lateTags.left ?? lateTags.right
}

function operatorParts(
  settings: CoGroupSettings,
  lateTag: string | undefined,
): WindowWork & { readonly contents: CoGroupContents } {
  const { assigner, trigger, allowedLatenessMs } = settings
  const contents = new CoGroupContents(settings.type, settings.results)
  return { contents, ...windowWork({ assigner, trigger, contents, allowedLatenessMs, lateTag }) }
}

class CoGroupOperator implements StreamOperator {
  readonly #lateTags: CoGroupSettings['lateTags']
  readonly #contents: CoGroupContents
  readonly #windows: StreamOperator

  constructor(settings: CoGroupSettings) {
    const { contents, create } = operatorParts(settings, anyTagOf(settings) === undefined ? undefined : LATE)
    this.#lateTags = settings.lateTags
    this.#contents = contents
    this.#windows = create()
  }

  open(context: OperatorContext, output: Output<unknown>): void | Promise<void> {
    return this.#windows.open(context, {
      emit: (value, timestamp) => output.emit(value, timestamp),
      emitTo: (tag, value, timestamp) => {
        if (tag !== LATE) return output.emitTo(tag, value, timestamp)
        // It is given out while the record is processed that is late.
        const lateTag = this.#lateTags[this.#contents.side]
        if (lateTag !== undefined) output.emitTo(lateTag, value, timestamp)
      },
    })
  }

  process(value: unknown, timestamp: number): void {
    this.#contents.side = 'left'
    this.#windows.process(value, timestamp)
  }

  processSecond(value: unknown, timestamp: number): void {
    this.#contents.side = 'right'
    this.#windows.process(value, timestamp)
  }

  onTimer(timer: DueTimer): void {
    this.#windows.onTimer!(timer)
  }
}
