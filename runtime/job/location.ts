// Where in the user's file a stream was made, for errors.

import { placeInUserCode } from '../base/user-place.ts'

/** File and line of the nearest caller outside the runtime; 'unknown place' if the stack does not show one. */
export function callerLocation(): string {
  return placeInUserCode(new Error('location').stack) ?? 'unknown place'
}
