// What a coordinator says to its slots and hears of them, for whoever waits for a moment to strike.

import type { Incarnation, SlotId } from '../../base/ids.ts'
import type { ControlLink, FromSlot, SlotProvider, SurvivingSlot, ToSlot } from '../../control/contract.ts'

export interface SlotWatcher {
  /** A fresh slot is to be started. */
  readonly started: (slot: SlotId, parallelism: number | undefined) => void
  readonly sent: (message: ToSlot, incarnation: Incarnation) => void
  readonly heard: (message: FromSlot) => void
  /** Who is there of the slots that outlived the coordinator before. */
  readonly found: (survivors: readonly SurvivingSlot[]) => void
}

/** The same provider, watched. */
export function watchedSlots(slots: SlotProvider, watcher: SlotWatcher): SlotProvider {
  const watched = (link: ControlLink<ToSlot, FromSlot>, incarnation: Incarnation): ControlLink<ToSlot, FromSlot> => ({
    send: (message) => {
      watcher.sent(message, incarnation)
      link.send(message)
    },
    onMessage: (callback) =>
      link.onMessage((message) => {
        watcher.heard(message)
        callback(message)
      }),
    onLost: (callback) => link.onLost(callback),
    close: () => link.close(),
  })
  return {
    start: (slot, start) => {
      watcher.started(slot, start.parallelism)
      return watched(slots.start(slot, start), start.incarnation)
    },
    terminate: (slot) => slots.terminate(slot),
    ...(slots.registrationDeadlineMs !== undefined && { registrationDeadlineMs: slots.registrationDeadlineMs }),
    ...(slots.survivors !== undefined && {
      survivors: async (asked) => {
        const found = await slots.survivors!(asked)
        watcher.found(found)
        return found.map((survivor) => ({ ...survivor, link: watched(survivor.link, asked.incarnation) }))
      },
    }),
    ...(slots.endSurvivors !== undefined && { endSurvivors: (incarnation) => slots.endSurvivors!(incarnation) }),
    get slotsOffered() {
      return slots.slotsOffered
    },
    close: () => slots.close?.() ?? Promise.resolve(),
  }
}
