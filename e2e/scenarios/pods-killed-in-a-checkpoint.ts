import { podsKilledWhileHeld } from './support/windows.ts'

export const scenario = podsKilledWhileHeld('pods killed in a checkpoint', 'preCommit')
