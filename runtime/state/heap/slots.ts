// Where the entries of a state lie: keys, values and snapshot epochs side by side in one array, so that one look into memory finds all
// three. An object for each entry would be a second look, and with a million keys each look waits as long as the rest of a record's work.

/** Entry n begins at STRIDE * n. */
export const STRIDE = 3
/** Behind the key, which comes first. */
export const VALUE = 1
/** The snapshot in which the entry was created, written or saved last (Cursor.cutEpoch). */
export const EPOCH = 2

export type Slots = unknown[]

/** Of one entry: its key is slots[at]. Valid until an entry of the same group is looked for, added or removed: entries move. */
export class Location {
  slots: Slots = []
  /** -1: there is none. */
  at = -1
}
